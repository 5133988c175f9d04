"""The analysis of an effort study's answers."""

from evenhand.study.analysis.analyze import analyze
from evenhand.study.analysis.result import StudyResult
from evenhand.study.analysis.spec import AnalysisSpec

__all__ = ["AnalysisSpec", "StudyResult", "analyze"]
