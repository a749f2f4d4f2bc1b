"""Laws of random quantities: each the quantile function of one uniform number in (0, 1)."""

from fabricarlo.laws.forms import LAWS, Form, LawKind
from fabricarlo.laws.law import Law, Parameter
from fabricarlo.laws.make import LawError, make
from fabricarlo.laws.quantiles import Prepared, Signature, quantile

__all__ = [
    "LAWS",
    "Form",
    "Law",
    "LawError",
    "LawKind",
    "Parameter",
    "Prepared",
    "Signature",
    "make",
    "quantile",
]
