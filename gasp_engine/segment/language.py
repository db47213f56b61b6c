"""Which language a text is in, judged from nothing but what stands before a given position.

The judgement is causal: it never looks ahead, so a sentence end that was found while an answer was
being written is still there when the answer is complete. No model, no download: function words for
languages in Latin script, letters for the others.
"""

from __future__ import annotations

import re

_WINDOW = 3000
"""Code points from the start of the text that are looked at; later text cannot change the guess."""

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the a an and or but of to in on at is are was were be been it its he she they we you "
        "i his her their our my your this that these those there here with for from by as not no if "
        "when while however although because so then thus therefore what who where why how which "
        "some many most all each both also after before during since until under over between "
        "according moreover nevertheless meanwhile finally later today yesterday another other such "
        "has have had will would can could may might should must do does did nobody everyone one",
        "de": "der die das den dem des ein eine einen einem einer und oder aber nicht ist sind war "
        "waren wird werden wurde es er sie wir ihr ich mit von zu zum zur im in am an auf für bei "
        "aus nach über unter durch gegen ohne um dass wenn weil als wie auch noch nur so dann danach "
        "dies diese dieser dieses hier dort man sich kein keine jedoch außerdem dabei laut heute",
        "fr": "le la les un une des du de et ou mais ne pas est sont était être il elle ils elles on "
        "nous vous je ce cette ces cet son sa ses leur leurs qui que dans sur sous avec pour par en "
        "au aux plus comme si quand lorsque cependant ainsi donc alors puis après avant selon aussi",
        "es": "el la los las un una unos unas y o pero no es son era fue ser está del al de en con "
        "por para que se su sus lo le les como más este esta estos estas ese esa según cuando si "
        "aunque entonces además también después antes sin sobre entre desde hasta él ella ellos",
        "it": "il lo la i gli le un uno una e o ma non è sono era del della dei delle di da in con su "
        "per tra fra che si al alla nel nella questo questa questi come più se quando secondo anche "
        "quindi poi dopo prima inoltre tuttavia egli ella essi loro suo sua",
        "pt": "o a os as um uma uns umas e ou mas não é são era foi ser do da dos das de em no na nos "
        "nas com por para que se seu sua como mais este esta esse essa isso quando segundo também "
        "depois antes então porém embora ele ela eles elas ao pelo pela",
        "nl": "de het een en of maar niet is zijn was waren wordt werd er hij zij ze wij we ik je dit "
        "dat deze die met van voor op in aan bij uit naar over door om als ook nog dan toen daarna "
        "echter volgens omdat",
        "sv": "den det de en ett och eller men inte är var blev han hon vi jag du detta denna dessa "
        "med av för på i till från om som när efter enligt också har hade",
        "da": "den det de en et og eller men ikke er var blev han hun vi jeg du dette denne disse med "
        "af for på i til fra om som når efter ifølge også har havde",
        "nb": "den det de en et ei og eller men ikke er var ble han hun vi jeg du dette denne disse "
        "med av for på i til fra om som når etter ifølge også har hadde",
        "fi": "ja tai mutta ei on oli ovat se ne hän he me minä tämä nämä joka että kun jos myös niin "
        "kuin sekä mukaan jälkeen",
        "pl": "i lub ale nie jest są był była było to ten ta te on ona oni w we na z ze do od po za "
        "dla przez że się jak gdy także który która które według jednak",
        "cs": "a nebo ale ne je jsou byl byla bylo to ten ta on ona oni v ve na z ze do od po za pro "
        "že se si jak když také který která které podle však",
        "ro": "și sau dar nu este sunt era un o al ale cu din în la pe de pentru că se care acest "
        "această ea el ei mai",
        "hu": "a az és vagy de nem van volt egy ez hogy is mint meg ha már csak után szerint ő ők",
        "tr": "ve veya ama değil bir bu şu o ile için de da ki gibi daha çok sonra göre olarak olan",
        "ca": "el la els les un una i o però no és són era del al de en amb per que es seu seva com "
        "més aquest aquesta segons quan també després",
        "id": "yang dan atau tetapi tidak adalah ini itu di ke dari untuk dengan pada dalam oleh ia "
        "mereka kami juga akan telah setelah menurut",
        "ru": "и или но не в во на с со к из от до по за для о об у это этот эта эти он она они мы вы "
        "я что как когда если также который которая которые был была было были однако согласно",
        "uk": "і й або але не в у на з із до від по за для про це цей ця ці він вона вони ми ви я що "
        "як коли якщо також який яка які був була було були однак згідно",
        "bg": "и или но не в във на с със към от до по за това този тази тези той тя те ние че как "
        "когато ако също който която които беше бяха",
        "el": "ο η το οι τα του της των και ή αλλά δεν είναι ήταν στο στη στην στον σε με για από "
        "που ότι ως αν όταν αυτό αυτός αυτή",
    }.items()
}

_CYRILLIC = ("ru", "uk", "bg")
_LATIN = tuple(language for language in FUNCTION_WORDS if language not in (*_CYRILLIC, "el"))
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language in (*_LATIN, *_CYRILLIC, "el"):
    for _word in FUNCTION_WORDS[_language]:
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS: tuple[tuple[str, str, str], ...] = (
    ("\u0370", "\u03ff", "el"),
    ("\u0400", "\u052f", "ru"),
    ("\u0530", "\u058f", "hy"),
    ("\u0590", "\u05ff", "he"),
    ("\u0600", "\u06ff", "ar"),
    ("\u0900", "\u097f", "hi"),
    ("\u0980", "\u09ff", "bn"),
    ("\u0a00", "\u0a7f", "pa"),
    ("\u0a80", "\u0aff", "gu"),
    ("\u0b80", "\u0bff", "ta"),
    ("\u0c00", "\u0c7f", "te"),
    ("\u0c80", "\u0cff", "kn"),
    ("\u0d00", "\u0d7f", "ml"),
    ("\u0e00", "\u0e7f", "th"),
    ("\u10a0", "\u10ff", "ka"),
    ("\u1200", "\u137f", "am"),
    ("\u3040", "\u30ff", "ja"),
    ("\u4e00", "\u9fff", "zh"),
    ("\uac00", "\ud7a3", "ko"),
)


def script_language(word: str) -> str | None:
    """The usual language of the script that a word is written in; None for Latin."""
    for char in word:
        if char < "\u0370":
            continue
        for first, last, language in _SCRIPTS:
            if first <= char <= last:
                return language
    return None


class LanguageGuess:
    """The language of a text up to a position; asked at ever later positions of one text.

    >>> guess = LanguageGuess()
    >>> guess.at("Der Damm wurde im Jahr 1931 eröffnet und ist ", 45)
    'de'
    """

    def __init__(self, given: str | None = None) -> None:
        self._given = None if given is None else re.split(r"[-_]", given.strip().lower())[0] or None
        self._counts = dict.fromkeys(FUNCTION_WORDS, 0)
        self._done = 0
        self._latin, self._cyrillic = "en", "ru"

    def at(self, text: str, position: int, word: str = "") -> str:
        """The language of `text[:position]`, `en` while nothing speaks for another one.

        Args:
            text: the whole text so far; only what stands before `position` is read.
            position: never less than in the call before.
            word: decides by its script when it is not in Latin letters.
        """
        if self._given:
            return self._given
        by_script = None if word.isascii() else script_language(word)
        if by_script and by_script != "ru":
            return by_script
        stop = min(position, _WINDOW)
        if self._done < stop:
            for match in _WORD.finditer(text, self._done, stop):
                if match.end() == stop < len(text) and stop == _WINDOW:
                    break
                for language in _LANGUAGES_OF.get(match.group().lower(), ()):
                    self._counts[language] += 1
            self._done = stop
            self._latin = self._best(_LATIN, "en")
            self._cyrillic = self._best(_CYRILLIC, "ru")
        return self._cyrillic if by_script else self._latin

    def _best(self, candidates: tuple[str, ...], default: str) -> str:
        best = max(candidates, key=self._counts.__getitem__)
        return best if self._counts[best] > self._counts[default] else default
