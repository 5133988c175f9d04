"""The common parts of all audits: metrics, records, thresholds and verdicts, findings, results, and provenance."""
