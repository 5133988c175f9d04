"""Agreement: do raters agree about the same people, and do they agree less about some groups?"""

from evenhand.audits.agreement.audit import agreement
from evenhand.audits.agreement.result import AgreementResult
from evenhand.audits.agreement.spec import AgreementSpec

__all__ = ["AgreementResult", "AgreementSpec", "agreement"]
