"""Human studies: their design, the answers of participants, and the analysis of the answers."""

from evenhand.study.analysis import AnalysisSpec, StudyResult, analyze
from evenhand.study.cases import Assignment, CaseSettings, Critics, assign_cases, simulate_feedback
from evenhand.study.instrument import design_sets
from evenhand.study.people import RecruitCheck, check_recruits
from evenhand.study.rationales import CodedRationales, code_rationales, export_rationales, rationale_sheet
from evenhand.study.responses import Exclusions, Responses, apply_exclusions, read_responses
from evenhand.study.sets import Instrument, SetSettings, load_instrument
from evenhand.study.simulate import Power, Respondents, people_needed, power, simulate_responses
from evenhand.study.spec import StudySpec, read_study, study_schema
from evenhand.study.survey import SurveyMap, read_survey
from evenhand.study.template import study_template

__all__ = [
    "AnalysisSpec",
    "Assignment",
    "CaseSettings",
    "CodedRationales",
    "Critics",
    "Exclusions",
    "Instrument",
    "Power",
    "RecruitCheck",
    "Respondents",
    "Responses",
    "SetSettings",
    "StudyResult",
    "StudySpec",
    "SurveyMap",
    "analyze",
    "apply_exclusions",
    "assign_cases",
    "check_recruits",
    "code_rationales",
    "design_sets",
    "export_rationales",
    "load_instrument",
    "people_needed",
    "power",
    "rationale_sheet",
    "read_responses",
    "read_study",
    "read_survey",
    "simulate_feedback",
    "simulate_responses",
    "study_schema",
    "study_template",
]


def __dir__() -> list[str]:
    return __all__
