"""Whether a full stop before a capital, a digit or a caseless letter ends its sentence.

What is written here are the classes that behave differently; what is merely an abbreviation in one of
some three hundred languages is asked of `sentencex`, word by word, with the neighbours hidden. So
its knowledge is used, while every decision stays local: it cannot be changed by text far away.
"""

from __future__ import annotations

import re
from functools import lru_cache

import sentencex

from .language import FUNCTION_WORDS, script_language


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _words(
    # Titles, before a name.
    "dr drs mr mrs mx prof profs rev hon gen brig maj capt cmdr lt sgt cpl pvt adm sen gov supt msgr "
    "messrs mmes amb insp hr hrn dipl dott sigg avv sr sra srta sres dña mme mlle mgr ste dhr mevr "
    "proff mudr judr phdr kpt płk inż "
    # Connectives and pointers, which have something after them.
    "e.g i.e eg vs v cf viz ca approx resp incl excl esp fig figs eq eqs vol vols pp chap sect "
    "z.b d.h u.a v.a bzw vgl evtl ggf sog zzgl inkl abb bd bde nr hrsg jh abs str p.ex c.-à-d "
    "env cfr p.es pagg p.ej pág págs núm np tzn tj m.in ul tzv např r.s ust rys rozdz "
    "o.a d.w.z bijv bl.a s.k d.v.s f.eks "
    "ул им рис табл см ср т.е т.к т.н акад проф доц стр вул див напр "
    "डॉ श्री प्रो δρ"
)
_TITLES_IF_CAPITALISED = _words(
    "Ms Col Rep Fr Pres Mt Ft Sig Ing Mag Doc Mons Me MM Arch Ks Bc TP ThS PGS Hab hab"
)
_REFERENCE = _words(
    # A number, a numeral or a single letter follows; otherwise the word is a word.
    "no nos p pg ch sec par para art arts app ref refs ed eds ex exs pt pts bk ln ll op n c b d fl r "
    "est ext tab table item sect jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed "
    "thu thur thurs fri sat sun s f ff z t m col cols kap ziff rn art anm alin cap capp fasc l "
    "n.º nº núms rozdz poz č čl odst с стр ст п пп гл т ч рис янв фев мар апр авг сент окт нояб дек"
)
_MAYBE = _words(
    # May end a sentence; it does before a word that begins one.
    "al inc ltd co corp llc plc bros jr snr esq ph.d m.d b.a m.a b.sc m.sc d.phil ll.b u.s u.k u.n "
    "e.u u.s.a d.c a.d b.c b.c.e c.e st ave blvd rd dept univ govt assn gmbh s.a s.p.a s.r.l s.l ee.uu "
    "usw uvm etc. u.s.w ecc itd itp т.д т.п др"
)
_ENDS = _words("etc a.m p.m")
"""End a sentence before any capital but those in `_AFTER_TIME`."""
_AFTER_TIME = _words(
    "monday tuesday wednesday thursday friday saturday sunday est edt cst cdt mst mdt pst pdt gmt utc "
    "cet cest eastern central mountain pacific january february march april may june july august "
    "september october november december"
)
_ORDINAL_LANGUAGES = _words("de da nb no nn sv fi is cs sk pl hu tr sl hr sr bs et lv lt lb")
_MONTHS = _words(
    "januar februar märz april mai juni juli august september oktober november dezember jänner "
    "januari februari mars maj juni juli augusti december oktober"
)
_ORDINARY = _words(
    "may me ill miss art con fed id la re ken mass mph ark cal wash ore conn rs no so do am in on is "
    "it at as or by to us we he max min"
)
"""Words that also stand in lists of abbreviations, but end far more sentences than they shorten."""
_LETTERED = _words(
    "plan type class grade group option section figure fig table appendix part vitamin hepatitis phase "
    "version model category level zone team point schedule exhibit room gate terminal building letter "
    "serie series block case step unit drive factor choice scenario variant panel site sample"
)
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_ROMAN = re.compile(r"[IVXLC]+\Z")
_LONGEST = 12
"""Code points of the longest word that is looked up as an abbreviation."""


def ends_sentence(word: str, following: str, language: str) -> bool:
    """Whether `word` + `.` ends a sentence when `following` is the next word.

    Args:
        word: what stands directly before the full stop, inner full stops included; may be empty.
        following: the next word; begins with a capital, a digit or a caseless letter.
        language: ISO 639 code.

    >>> ends_sentence("Fig", "2", "en"), ends_sentence("U.S", "She", "en")
    (False, True)
    >>> ends_sentence("U.S", "Army", "en"), ends_sentence("3", "Mai", "de")
    (False, False)
    """
    if not word:
        return True
    folded = word.lower()
    digit = following[0].isdigit()
    if len(word) <= 2 and word.isdigit():
        if language not in _ORDINAL_LANGUAGES:
            return True
        return not digit and following.lower() not in _MONTHS and _begins(following, language)
    if word == "EE" and following == "UU":
        return False
    if word.isupper() and len(word) > 1 and "." not in word and not digit:
        return True  # CA, NATO: capitals have no need of a full stop
    if folded in _NEVER or word in _TITLES_IF_CAPITALISED:
        return False
    if folded in _ENDS:
        return not (digit or following.lower() in _AFTER_TIME)
    if digit and len(word) == 1 and word.isupper():
        return language == "en"
    if digit:
        return not (
            folded in _REFERENCE
            or folded in _MAYBE
            or folded.endswith("str")
            or _is_abbreviation(word, language)
        )
    if len(word) == 1 and word.isalpha():
        return _begins(following, language) and not (len(following) == 1 and following != "A")
    if folded in _REFERENCE:
        return not (len(following) == 1 and following.isupper() or _ROMAN.match(following))
    if folded in _MAYBE or _ACRONYM.match(word):
        return _begins(following, language)
    if _is_abbreviation(word, language):
        return _begins(following, language)
    return True


def is_abbreviation(word: str, language: str) -> bool:
    """Whether `word` + `.` is an abbreviation of any class."""
    folded = word.lower()
    return (
        (len(word) == 1 and word.isalpha())
        or folded in _NEVER
        or word in _TITLES_IF_CAPITALISED
        or folded in _REFERENCE
        or folded in _MAYBE
        or folded in _ENDS
        or folded.endswith("str")
        or word == "EE"
        or _ACRONYM.match(word) is not None
        or _is_abbreviation(word, language)
    )


def points_ahead(word: str) -> bool:
    """Whether a number in brackets after `word` + `.` belongs to the word: `Ref. [4]`."""
    folded = word.lower()
    return folded in _NEVER or folded in _REFERENCE or folded == "al"


def is_lettered(before: str) -> bool:
    """Whether a single capital after these words is a label, not an initial: `Plan B.`

    >>> is_lettered("They chose plan "), is_lettered("He met ")
    (True, False)
    """
    words = before.split()
    return bool(words) and words[-1].lower() in _LETTERED


def _begins(word: str, language: str) -> bool:
    """Whether a capitalised word is one that begins sentences: an article, a pronoun, …"""
    folded = word.lower()
    return folded in FUNCTION_WORDS["en"] or folded in FUNCTION_WORDS.get(language, ())


def _is_abbreviation(word: str, language: str) -> bool:
    return len(word) <= _LONGEST and _known(word, language)


@lru_cache(maxsize=65536)
def _known(word: str, language: str) -> bool:
    if word.lower() in _ORDINARY or not any(char.isalpha() for char in word):
        return False
    # The probe's own words are capitalised and known to no list; in a script of its own the
    # neighbour has to be of that script, or the rule of sentencex for Latin capitals decides.
    neighbour = "Абв" if script_language(word) in ("ru", "uk", "bg") else "Xyz"
    return len(sentencex.segment(language, f"Xx {word}. {neighbour}")) == 1
