"""The audits. Each has the same rooms: spec, audit (Table + Spec -> Result), result, charts."""
