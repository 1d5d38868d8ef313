"""Short formulas within a line as plain letters, α₁ ≤ x² for their LaTeX. Nothing here knows Qt."""

from __future__ import annotations

import re

_UP = dict(zip("0123456789+-=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", strict=True))
_DOWN = dict(zip("0123456789+-=()aeijnxkmt", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑᵢⱼₙₓₖₘₜ", strict=True))
_GREEK = (
    "alpha α beta β gamma γ delta δ epsilon ε varepsilon ε zeta ζ eta η theta θ iota ι kappa κ lambda λ mu μ nu ν xi ξ "
    "pi π rho ρ sigma σ tau τ upsilon υ phi φ varphi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π "
    "Sigma Σ Phi Φ Psi Ψ Omega Ω"
)
_SIGNS = (
    "times × cdot · div ÷ pm ± mp ∓ le ≤ leq ≤ ge ≥ geq ≥ ne ≠ neq ≠ approx ≈ equiv ≡ sim ∼ propto ∝ infty ∞ to → "
    "rightarrow → leftarrow ← Rightarrow ⇒ Leftrightarrow ⇔ implies ⇒ iff ⇔ in ∈ notin ∉ subset ⊂ subseteq ⊆ cup ∪ "
    "cap ∩ emptyset ∅ forall ∀ exists ∃ neg ¬ land ∧ lor ∨ partial ∂ nabla ∇ sum ∑ prod ∏ int ∫ ldots … cdots … "
    "dots … degree ° circ ∘ angle ∠ perp ⊥ parallel ∥ mid | ell ℓ hbar ℏ Re ℜ Im ℑ quad  "
)
_WORDS = ("sin", "cos", "tan", "log", "ln", "exp", "lim", "max", "min", "det", "gcd", "arcsin", "arccos", "arctan")
_NAMES: dict[str, str] = dict(zip(*[iter(f"{_GREEK} {_SIGNS}".split(" "))] * 2, strict=False))
_SETS = {"R": "ℝ", "N": "ℕ", "Z": "ℤ", "Q": "ℚ", "C": "ℂ"}
_PLAIN = re.compile(r"\\(?:mathrm|text|mathbf|mathit|operatorname)\{([^{}\\]*)\}")
_BLACKBOARD = re.compile(r"\\mathbb\{([RNZQC])\}")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}\\]+)\}\{([^{}\\]+)\}")
_ROOT = re.compile(r"\\sqrt\{([^{}\\]+)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SPACE = re.compile(r"\\[,;:! ]|~")
_RAISED = re.compile(r"([\^_])(?:\{([^{}]*)\}|(.))")


FORMULA_LINK = "formula:"
"""Begins the address of a formula within a line; the source follows in hexadecimal digits."""
_TALL = re.compile(r"\\(?:[dtc]?frac|sqrt|sum|prod|int|oint|lim|binom|overline|hat|bar|vec|dot|tilde)\b")


def is_tall(tex: str) -> bool:
    """Whether letters alone say the formula poorly: it has fractions, roots, limits or accents."""
    return _TALL.search(tex) is not None


def linked_source(address: str) -> str | None:
    """The source in the address of a formula; None for any other address."""
    if not address.startswith(FORMULA_LINK):
        return None
    try:
        return bytes.fromhex(address.removeprefix(FORMULA_LINK).partition("?")[0]).decode()
    except ValueError:
        return None


def plain_formula(tex: str) -> str | None:
    """The formula in Unicode letters, or None where letters cannot say it (its source is shown then)."""
    text = _SPACE.sub(" ", tex.replace("\\left", "").replace("\\right", ""))
    text = _BLACKBOARD.sub(lambda m: _SETS[m[1]], _PLAIN.sub(r"\1", text))
    text = _COMMAND.sub(_command, text)
    for _ in range(3):
        text = _ROOT.sub(lambda m: f"√{_grouped(m[1])}", text)
        text = _FRACTION.sub(lambda m: f"{_grouped(m[1])}/{_grouped(m[2])}", text)
    text = _RAISED.sub(_raised, text)
    text = text.replace("\\{", "\u0001").replace("\\}", "\u0002").replace("\\%", "%").replace("\\$", "$")
    if re.search(r"[\\^_{}&]", text):
        return None
    return " ".join(text.replace("\u0001", "{").replace("\u0002", "}").split())


def _command(match: re.Match[str]) -> str:
    name: str = match[1]
    if name in _NAMES:
        return _NAMES[name]
    if name in _WORDS:
        return f"{name} "
    return str(match[0])


def _grouped(part: str) -> str:
    return part if len(part) == 1 or part.isalnum() else f"({part})"


def _raised(match: re.Match[str]) -> str:
    inner: str = match[2] if match[2] is not None else match[3]
    table = _UP if match[1] == "^" else _DOWN
    if inner and all(c in table for c in inner):
        return "".join(table[c] for c in inner)
    return str(match[0])
