"""What all audits share: metrics, records, thresholds and verdicts, findings, results, provenance."""
