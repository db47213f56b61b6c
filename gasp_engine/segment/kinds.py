"""What a unit is: a claim that can be unsupported, or something that makes no claim.

A wrong "claim" costs a flag that should not be; a wrong "abstention" hides an unsupported claim. So
the patterns are narrow, and a sentence that refuses and then goes on to claim is a claim.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..types import SentenceKind
from .blocks import Form

_LONGEST = 400
"""Code points of the longest sentence that can be an abstention or boilerplate."""
_LABEL_WORDS = 3

_QUESTION = re.compile(
    r"[?？؟⁇⁈‽⸮፧\u037e](?:[\s\"'’”»)\]」』）】*_~`!！]|\[\^?\d{1,4}(?:, ?\d{1,4})*\])*\Z"
)
_GREEK_QUESTION = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff][»\"”)]*;\Z")
_MARKERS = re.compile(
    r"(?:>[ \t]*)*(?:(?:[-*+•‣◦▪·∙]|\(?(?:\d{1,3}|[a-zA-Z])[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?[*_\"“„«]{0,3}"
)

_SOURCE = (
    r"(?:(?:(?:the|this|that|these|those|your|any|any of the|either|both|all|our|my)\s+)?"
    r"(?:(?:provided|given|supplied|available|retrieved|above|following|current|search|source|"
    r"context|reference|text|input|relevant|two|three|four|five|\d+)\s+){0,3}"
    r"(?:context|passages?|documents?|texts?|sources?|information|info|results?|excerpts?|materials?|"
    r"articles?|snippets?|data|content|chunks?|evidence|references?|knowledge base|paragraphs?|"
    r"reviews?|documentation|files?)"
    r"(?:\s+(?:provided|given|supplied|available|above|here|I have|you (?:have )?(?:provided|gave|shared)))?)"
)
_NOT_SAY = (
    r"(?:(?:do(?:es)?|did)(?: not|n['’]t)(?: (?:explicitly|directly|specifically|actually|clearly|"
    r"seem to|appear to|currently))* (?:contain|mention|say|state|specify|provide|include|give|"
    r"indicate|address|answer|cover|have|tell|offer|discuss|describe|reveal|explain|show|list|identify|"
    r"name|note|report|define|clarify|disclose|refer|support|confirm|allow|make|present|supply|detail)"
    r"|(?:contains?|provides?|includes?|gives?|offers?|has|have|makes?) no\b"
    r"|(?:is|are) (?:silent|unclear|insufficient|not sufficient|not enough|not clear|not explicit)"
    r"|lacks?\b|(?:never|nowhere) (?:mentions?|says?|states?|specif(?:y|ies)))"
)
_UNABLE = (
    r"(?:can(?:not|['’]t| not)|could(?: not|n['’]t)|am (?:not able|unable) to|['’]m (?:not able|unable) to"
    r"|(?:do|did)(?: not|n['’]t)|was (?:not able|unable) to|was(?: not|n['’]t) able to"
    r"|are (?:not able|unable) to|were (?:not able|unable) to)"
)
_ABSTENTIONS = [
    rf"\b(?:I|we) {_UNABLE} (?:(?:really|actually|currently|definitively|reliably|fully|accurately|"
    r"directly|confidently|to) )*"
    r"(?:know\b|answer|find|determine|tell|say\b|provide|confirm|locate|help with|have (?:any |enough |"
    r"sufficient |the |access|information|that)|see any|verify|give|identify|respond|be (?:sure|certain))",
    r"\b(?:I['’]m|I am|we are|we['’]re) (?:not sure|not certain|unsure|uncertain|not aware)\b",
    r"\bI have (?:no|insufficient|not enough) (?:information|idea|knowledge|data|context|details?|way)",
    rf"^(?:unfortunately,? |sorry,? |however,? |but )?{_SOURCE} {_NOT_SAY}",
    rf"\b(?:based on|according to|from|in|given|within) {_SOURCE},? .{{0,80}}"
    r"(?:cannot be (?:determined|answered|found|established)|can['’]t be (?:determined|answered)"
    r"|not (?:possible|clear|known|specified|stated|mentioned|provided|given|enough)"
    r"|unclear|unknown|I (?:cannot|can['’]t|don['’]t|do not|am unable|could not|couldn['’]t))",
    r"\b(?:there (?:is|are|was|were)(?: not|n['’]t)? ?(?:no|not|any|enough|sufficient|insufficient)+"
    r"(?: \w+){0,2} (?:information|info|mention|details?|data|evidence|indication|answers?|references?|"
    rf"context|passages?|documents?)\b.{{0,120}})",
    r"^(?:no|insufficient|not enough) (?:\w+ ){0,2}(?:information|info|answer|details?|data|context|"
    r"evidence|mention|documents?|passages?)\b.{0,60}"
    r"(?:\b(?:is|are|was|were|to|in|about|on|of|for|available|found|provided|given)\b|\.?\Z)",
    rf"\b(?:is|are|was|were)(?: not|n['’]t) (?:\w+ )?(?:mentioned|specified|stated|provided|given|"
    r"included|found|available|contained|discussed|described|addressed|covered|disclosed|indicated|"
    rf"answered|identified|listed|present)\b(?:\s\w+)? (?:in|by|within|from) {_SOURCE}",
    rf"\b(?:information|answer|question)\b.{{0,80}}(?:is|are|was|were|be|cannot|can['’]t)(?: not|n['’]t)?"
    r" (?:not )?(?:be )?(?:mentioned|specified|stated|provided|given|included|found|available|contained|"
    rf"answered|determined)\b(?:\s\w+)?(?: (?:in|by|within|from|based on|using|with) {_SOURCE})",
    r"^(?:it|this|that|the answer) (?:is|was|remains) (?:unknown|unclear|not (?:known|clear|specified|"
    r"stated|mentioned|possible to (?:say|tell|determine|answer)))\b",
    r"^(?:unknown|unanswerable|n/a|not (?:specified|stated|mentioned|available|found|provided|given|"
    r"enough information)|no answer|i don['’]t know|cannot answer|can['’]t answer|none)[.!]?\Z",
    # German
    r"\b(?:ich|wir) (?:weiß|wissen|kann|können|habe|haben)\b.{0,80}\b(?:nicht|keine)\b.{0,60}"
    r"(?:beantworten|sagen|finden|bestimmen|beurteilen|informationen|angaben|\bnicht\b|wissen)",
    r"\b(?:der|die|das|den|dem|im|in) (?:\w+ )?(?:kontext|text|texte|quellen?|dokumente?n?|passagen?|"
    r"abschnitte?|informationen|unterlagen)\b.{0,60}(?:\bnicht (?:\w+ )?(?:hervor|erwähnt|genannt|"
    r"angegeben|enthalten|gesagt|beantwort\w*|an\b|ob\b)|\bkeine (?:\w+ )?(?:angaben?|informationen?|"
    r"hinweise?|antwort|aussage)|sagt nicht|sagen nicht|nennt nicht|erwähnt nicht|enthält nicht)",
    r"^(?:es gibt|dazu gibt es|es liegen|dazu liegen|leider gibt es|darüber gibt es) .{0,40}\b(?:keine|nicht"
    r" genug|nicht genügend)\b.{0,40}(?:informationen?|angaben?|hinweise?|daten)",
    # French
    r"\b(?:je|nous) (?:ne|n['’]) ?.{0,30}\b(?:sais|savons|peux|pouvons|trouve|trouvons|ai|dispose|"
    r"suis|disposons)\b.{0,20}\b(?:pas|aucune?)\b",
    r"\b(?:le|les|la|ce|ces|l['’]) ?(?:contexte|textes?|documents?|sources?|passages?|extraits?|"
    r"informations?|article)\b.{0,40}\b(?:ne|n['’]) ?.{0,30}\b(?:pas|aucune?|rien)\b",
    r"^(?:il n['’]y a|aucune|malheureusement, aucune) .{0,30}\b(?:information|mention|donnée|réponse)",
    # Spanish, Portuguese, Italian
    r"^(?:lo siento, |lamentablemente,? )?(?:yo )?no (?:lo )?(?:sé|puedo (?:responder|contestar|"
    r"determinar|encontrar|saber|decir)|tengo (?:suficiente |información|datos)|dispongo de|encuentro|"
    r"se (?:menciona|indica|especifica|dice|proporciona)|hay (?:\w+ )?(?:información|datos|mención))",
    r"\b(?:el|los|la|las|este|estos) (?:contexto|textos?|documentos?|fuentes?|pasajes?|información|"
    r"fragmentos?)\b.{0,40}\bno (?:\w+ ){0,2}(?:mencionan?|dicen?|indican?|contienen?|"
    r"especifican?|proporcionan?|incluyen?|ofrecen?|aclaran?|responden?)",
    r"^(?:infelizmente,? |desculpe, )?(?:eu )?não (?:sei|posso (?:responder|determinar|dizer)|consigo|"
    r"tenho (?:informaç|dados)|encontrei|há (?:\w+ )?(?:informaç|dados|menção)|é (?:mencionad|informad))",
    r"\b(?:o|os|a|as) (?:contextos?|textos?|documentos?|fontes?|passagens?|trechos?|"
    r"informaç\w+)\b.{0,40}\bnão (?:\w+ ){0,2}(?:menciona|diz|dizem|indica|cont[ée]m|especifica|fornece|inclu|"
    r"informa|respond)",
    r"^(?:mi dispiace, |purtroppo,? )?(?:io )?non (?:lo )?(?:so\b|posso (?:rispondere|determinare|dire)|"
    r"sono in grado|ho (?:abbastanza |informazioni|trovato|dati)|ci sono (?:\w+ )?(?:informazioni|dati)|"
    r"è (?:specificat|menzionat|indicat))",
    r"\b(?:il|lo|la|i|le|gli|nel) (?:contesto|testi?|documenti?|documento|fonti|fonte|passaggi?o?|"
    r"informazioni)\b.{0,40}\bnon (?:\w+ ){0,2}(?:menziona|dice|dicono|indica|contiene|contengono|"
    r"specifica|fornisc|include|riporta|rispond)",
    # Dutch, Scandinavian, Polish, Turkish
    r"^(?:ik|wij|we) (?:weet|weten|kan|kunnen|heb|hebben) .{0,60}\b(?:niet|geen)\b",
    r"\b(?:de|het|deze) (?:context|teksten|tekst|bronnen|bron|documenten|document|passages?)\b.{0,40}"
    r"\b(?:niet|geen)\b.{0,30}",
    r"^(?:jag|jeg|vi) (?:vet|ved|vet|kan|har|hittar|finner|finder) .{0,20}\b(?:inte|ikke|ingen)\b",
    r"\b(?:kontexten|texten|källorna|dokumentet|dokumenten|konteksten|teksten|kilderne|kildene|dokumentet)\b"
    r".{0,30}\b(?:inte|ikke|ingen|inga)\b",
    r"^(?:niestety,? )?nie (?:wiem|mogę (?:odpowiedzieć|znaleźć|określić)|mam (?:informacji|danych)|ma "
    r"(?:\w+ )?informacji|znalazłem)",
    r"\b(?:kontekst|tekst|źródła|dokumenty?|fragmenty?)\b.{0,30}\bnie (?:\w+ )?(?:zawiera|mówi|wspomina|"
    r"podaje|podają|określa|odpowiada)",
    r"\b(?:bilmiyorum|bulamadım|yanıtlayamıyorum|cevaplayamıyorum|yanıtlayamam|bilgi (?:yok|bulunm)|"
    r"belirtilmemi|bahsedilmiyor|bahsedilmemi|yer almıyor)",
    # Russian, Ukrainian
    r"\bя не (?:знаю|могу (?:ответить|найти|определить|сказать)|нашел|нашёл|нашла|можу (?:відповісти|знайти)|"
    r"располагаю)",
    r"\b(?:контекст\w*|текст\w*|источник\w*|документ\w*|отрывк\w*|джерел\w*|уривк\w*)\b.{0,40}\b(?:не "
    r"(?:содерж|упомина|указ|говор|сказан|сообща|назван|міст|згад|вказ)|нет (?:\w+ )?(?:информаци|данн|сведен|"
    r"упомин|ответ)|немає)",
    r"^(?:к сожалению,? )?(?:нет|недостаточно) (?:\w+ )?(?:информаци|данн|сведен)",
    # Arabic, Persian, Hindi
    r"(?:لا أعرف|لا أعلم|لا أستطيع|لا يمكنني|لا يمكن (?:تحديد|الإجابة|معرفة)|لا (?:يذكر|يحتوي|تحتوي|يوضح|يحدد|تذكر|يشير|"
    r"توجد معلومات)|لم (?:يذكر|يُذكر|يرد|يتم ذكر)|ليس لدي|لا توجد|نمی‌دانم|نمیدانم|ذکر نشده|اشاره نشده)",
    r"(?:मुझे (?:नहीं पता|पता नहीं|नहीं मालूम|मालूम नहीं|इसकी जानकारी नहीं)|(?:संदर्भ|पाठ|जानकारी|दस्तावेज़|स्रोत).{0,60}नहीं|नहीं (?:बता|दे) सकता)",
    # Chinese, Japanese, Korean
    r"(?:我|我们)(?:并)?(?:不知道|不清楚|无法|無法|不能(?:回答|确定)|没有(?:足够|相关|找到)|沒有)",
    r"(?:上下文|文中|文本|资料|資料|文档|文檔|材料|来源|來源|段落|信息|資訊|原文|文章|内容|上文)[^。]{0,16}"
    r"(?:没有(?:提|说|說|给|包|相关|明确|足够|任何)|沒有(?:提|說|給|包)|未(?:提|说|明确|给|包含|涉及|說)|并未|並未|不足以|不包含|无法|無法)",
    r"^(?:无法|無法|不能)(?:确定|回答|得知|判断|確定|判斷)",
    r"(?:わかりません|分かりません|わからない|分からない|不明です|記載されていません|記載がありません|記載はありません|"
    r"述べられていません|書かれていません|言及されていません|含まれていません|答えられません|お答えできません|見つかりません|情報がありません|"
    r"情報はありません|示されていません|触れられていません)",
    r"(?:모르겠|알 수 없|알지 못|언급되지 않|언급하지 않|나와 있지 않|포함되어 있지 않|제공되지 않|찾을 수 없|답할 수 없|답변할 수 없|"
    r"명시되어 있지 않|정보가 없|언급이 없)",
]
_ABSTENTION = re.compile("|".join(f"(?:{pattern})" for pattern in _ABSTENTIONS), re.I)
_HINTS = (
    "n't n’t not no unable unsure unclear unknown uncertain unanswerable insufficient lack silent never "
    "nicht kein pas aucun rien não non niet geen inte ikke ingen nie bilm bulama yanıtla cevapla bilgi "
    "belirtil bahsed almıyor не нет недостаточно немає لا لم ليس نم نشد नहीं 不 无 無 没 沒 未 ません ない 不明 없 않 못 모르 "
    "n/a none"
).split()
_HINT = re.compile("|".join(map(re.escape, _HINTS)))
_GOES_ON = re.compile(
    r"(?:[,;:–—-]\s*|\s|^)(?:but|however|although|though|yet|still|nevertheless|nonetheless|except|"
    r"while|whereas|instead|so|therefore|aber|jedoch|allerdings|sondern|obwohl|mais|cependant|toutefois|"
    r"pero|sino|aunque|mas|porém|embora|ma|però|tuttavia|maar|echter|men|ale|jednak|ama|ancak|fakat|но|"
    r"однако|зато|але)\b[\s,]+(?P<rest>[^\n]*)",
    re.I,
)
_GOES_ON_CJK = re.compile(
    r"[，、](?:但|但是|不过|不過|然而|可是|却|而是|ただし|しかし|하지만)(?P<rest>[^\n]*)|(?:が|けど)、(?P<rest2>.*)"
)
_CONCESSION = re.compile(
    r"(?:while|although|though|even though|even if|whereas|despite|obwohl|zwar|bien que|aunque|embora|"
    r"sebbene|benché|hoewel|chociaż|хотя|虽然|雖然|尽管|儘管)\b",
    re.I,
)

_BOILERPLATE = re.compile(
    r"(?:(?:sure|certainly|of course|absolutely|definitely|no problem|okay|ok|alright|great|got it|"
    r"understood|happy to help|glad to help|my pleasure|you['’]re welcome|thank you|thanks|hello|hi|"
    r"great question|good question)(?: thing| there)?(?:[,!.:\s–—-]+(?:here(?:['’]s| is| are)|below (?:is|are)"
    r"|I (?:can|will|would be happy to|['’]d be happy to)|I['’](?:ll|d)|let me|let['’]s|based on)\b.{0,160}[:.!]|"
    r"(?: for (?:asking|your|the)\b.{0,60})?[!.:,]*)"
    r"|(?:here(?:['’]s| is| are)|below (?:is|are)|the following (?:is|are)) "
    r"(?:(?:a|an|the|my|your|some|what|how|three|two|four|five|\d+|key|main|brief|short|quick|concise) ?)"
    r"[^.!?:]{0,140}:"
    r"|(?:based on|according to|from|in|using|given) (?:the )?(?:\w+ ){0,3}(?:context|passages?|documents?|"
    r"information|sources?|text|articles?|excerpts?|data|reviews?|results)(?: \w+){0,3}"
    r"(?:,? (?:here (?:is|are)|below (?:is|are))[^.!?:]{0,120})?:"
    r"|(?:in (?:summary|conclusion|short|brief)|to (?:summarize|sum up|conclude)|summary|answer|response|"
    r"overview|conclusion)\s*[:,]"
    r"|(?:I|we) hope (?:this|that|it)\b.{0,80}[.!]"
    r"|(?:please )?(?:feel free|let me know|do not hesitate|don['’]t hesitate)\b.{0,160}[.!?]"
    r"|(?:if you (?:have|need|would like|want)\b.{0,120}(?:let me know|feel free|just ask|please ask|"
    r"don['’]t hesitate|happy to help|glad to help)\b.{0,80}[.!])"
    r"|(?:is there anything else|would you like (?:me|more|any|to)|do you have any (?:other|more|further))\b.{0,120}\?"
    r"|(?:let me|I will|I['’]ll) (?:summarize|explain|walk you|break (?:it|this) down|answer)\b.{0,100}[:.]"
    # Other languages
    r"|(?:natürlich|gerne?|klar|selbstverständlich|sicher)[!,.:–—-]*(?: (?:hier (?:ist|sind)|nachfolgend|im folgenden)"
    r"\b.{0,120}:)?|(?:hier (?:ist|sind)|im folgenden)\b[^.!?:]{0,120}:|ich hoffe,? (?:das|dies)\b.{0,60}[.!]"
    r"|(?:bien sûr|certainement|avec plaisir|d['’]accord)\s?[!,.:–—-]*(?: voici\b.{0,120}:)?|voici [^.!?:]{0,120}:"
    r"|(?:claro|por supuesto|con gusto|desde luego|com certeza|claro que sí)[!,.:–—-]*(?: (?:aquí (?:está|tiene|"
    r"tienes|están)|aqui (?:está|estão))\b.{0,120}:)?|(?:aquí|aqui) (?:está|están|tienes?|estão) [^.!?:]{0,120}:"
    r"|(?:certo|certamente|ecco)[!,.:–—-]*(?: (?:ecco )?[^.!?:]{0,120}:)?|(?:natuurlijk|zeker)[!,.:–—-]*"
    r"(?: hier (?:is|zijn)\b.{0,120}:)?|(?:конечно|разумеется)[!,.:–—-]*(?: вот\b.{0,120}:)?|вот [^.!?:]{0,120}:"
    r"|(?:oczywiście|jasne)[!,.:–—-]*(?: oto\b.{0,120}:)?|oto [^.!?:]{0,120}:"
    r"|(?:当然|好的|當然|没问题)[！!，,。]*(?:(?:以下|下面|这)是?[^。！？]{0,60}[：:])?|(?:以下|下面)是[^。！？]{0,60}[：:]"
    r"|(?:もちろんです|もちろん|はい、|承知しました|わかりました)[！!。、]*(?:以下[^。！？]{0,60})?[：:。]?"
    r"|以下(?:は|が|に)[^。！？]{0,60}[：:。]|(?:بالتأكيد|بالطبع|إليك|فيما يلي)[^.؟]{0,100}[:!.،]"
    r")[\s*_\"”)]*\Z",
    re.I | re.S,
)


def classify(text: str, form: Form, is_abstention: Callable[[str], bool] | None) -> SentenceKind:
    """The kind of one unit.

    Args:
        text: the unit, markers included.
        form: the form of its block.
        is_abstention: takes the place of the built-in patterns.

    >>> classify("I don't know based on the context.", "prose", None)
    'abstention'
    >>> classify("The context does not say it, but the mayor is Ana Ruiz.", "prose", None)
    'claim'
    """
    if form == "code":
        return "code"
    if form in ("heading", "table_head"):
        return "heading"
    if form == "marker":
        return "list_marker"
    if form == "rule" or not _has_content(text):
        return "boilerplate"
    if form == "prose" and is_abstention is not None and is_abstention(text):
        return "abstention"
    last = text[-1]
    if last not in ".。" and not last.isalpha() and (_QUESTION.search(text[-60:]) or _GREEK_QUESTION.search(text[-6:])):
        if len(text) <= _LONGEST and _BOILERPLATE.match(_bare(text)):
            return "boilerplate"
        return "question"
    if form != "prose" or len(text) > _LONGEST:
        return "claim"
    bare = _bare(text)
    if is_abstention is None and _abstains(bare):
        return "abstention"
    if last in ":：" and len(bare.split()) <= _LABEL_WORDS and not any(map(str.isdigit, bare)):
        return "boilerplate" if _BOILERPLATE.match(bare) else "heading"
    return "boilerplate" if _BOILERPLATE.match(bare) else "claim"


def _has_content(text: str) -> bool:
    return text[:1].isalnum() or any(char.isalnum() for char in text)


def _bare(text: str) -> str:
    match = _MARKERS.match(text)
    return text[match.end() :] if match else text


def _abstains(text: str) -> bool:
    low = text.lower()
    if _HINT.search(low) is None:
        return False
    text = " ".join(text.replace("*", "").split())
    found = _ABSTENTION.search(text)
    if not found or _CONCESSION.match(text):
        return False
    for pattern in (_GOES_ON, _GOES_ON_CJK):
        rest = pattern.search(text, found.start())
        if rest:
            groups = [group for group in rest.groups() if group]
            tail = groups[0].strip() if groups else ""
            if len(tail) > 8 and not _abstains(tail):
                return False
    return True
