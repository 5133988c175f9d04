"""The descriptor of the study analysis for the report, as of an audit; it reads answers instead of a table."""

from evenhand.core.descriptor import AuditDescriptor

ANALYSIS = AuditDescriptor(
    name="study",
    title="Human study",
    question="Do people look at the trajectory or at the aggregate when they judge who is alike?",
    evidence=("people asked",),
    spec="evenhand.study.analysis.spec:AnalysisSpec",
    metrics="evenhand.study.analysis.metrics:METRICS",
    result="evenhand.study.analysis.result:StudyResult",
    run="evenhand.study.analysis.analyze:run",
    section="evenhand.study.analysis.section",
    charts="evenhand.study.analysis.charts:CHARTS",
    messages="evenhand.study.analysis.messages:say",
)
