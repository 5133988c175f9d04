"""What all audits share: settings, results, findings, sections of a report, provenance."""
