"""Text in many scripts, and what breaks careless tokenizers; and a tokenizer of bytes and merges, by its definition."""

import re

SCRIPTS = {
    "latin": "The quick brown fox isn't jumping over 13 lazy dogs; it'll rest, we've heard! Größe, naïve café, Ångström, ﬁne.",
    "greek": "Η γρήγορη αλεπού πηδάει πάνω από το τεμπέλικο σκυλί. Πόσα; 42!",
    "cyrillic": "Съешь же ещё этих мягких французских булок, да выпей чаю — 7 раз.",
    "arabic": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر ومغلف بجلد أزرق ١٢٣",
    "hebrew": "דג סקרן שט בים מאוכזב ולפתע מצא לו חברה, שלום!",
    "devanagari": "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश १२३",
    "chinese": "视野无限广，窗外有蓝天。微风迎客，软语伴茶。２０２６年",
    "japanese": "いろはにほへと ちりぬるを カタカナと漢字、ﾊﾝｶｸもある。",
    "korean": "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다.",
    "thai": "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "emoji": "👩‍👩‍👧 🇩🇪 ✈️ e\u0301 und é, A\u030a und Å, ① ½ ٣ 𝟘",
    "spaces": "  two\tspaces\n\n  and\r\nlines   \u00a0x \u3000 end  \n",
    "code": 'for (int i = 0; i < 10; ++i) { printf("%d\\n", a[i]); }  // 1234567\n\tx_1 += 0x7f;',
    "special": "<s>a</s> <|end|><|end|> <|begin|>b <0x41> ▁bar",
    "empty": "",
}


def byte_alphabet():
    """GPT-2's character for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return {**{b: chr(b) for b in printable}, **{b: chr(256 + i) for i, b in enumerate(others)}}


# Patterns that Python's re and PCRE2 read alike.
PATTERN = r" ?[^\s]+|\s+"


def naive_tokenizer(count):
    """tokenizer.json with `count` merges, learned from SCRIPTS in the plainest way."""
    alphabet = byte_alphabet()
    words = [[alphabet[b] for b in word.encode()] for text in SCRIPTS.values() for word in re.findall(PATTERN, text)]
    merges = []
    for _ in range(count):
        pairs = {}
        for word in words:
            for pair in zip(word, word[1:]):
                pairs[pair] = pairs.get(pair, 0) + 1
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = [merged(word, best) for word in words]
    tokens = [*alphabet.values(), *("".join(pair) for pair in merges)]
    return {
        "added_tokens": [{"id": len(tokens), "content": "<|end|>", "special": True, "lstrip": False, "rstrip": False}],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
            ],
        },
        "post_processor": None,
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": [" ".join(pair) for pair in merges]},
    }


def merged(word, pair):
    result, i = [], 0
    while i < len(word):
        joined = tuple(word[i : i + 2]) == pair
        result.append("".join(pair) if joined else word[i])
        i += 2 if joined else 1
    return result


def naive_encode(tokenizer, text):
    """Merges in order, each wherever it fits."""
    alphabet, vocabulary = byte_alphabet(), tokenizer["model"]["vocab"]
    ids = []
    for i, part in enumerate(text.split("<|end|>")):
        ids += [tokenizer["added_tokens"][0]["id"]] if i else []
        for word in re.findall(PATTERN, part):
            symbols = [alphabet[b] for b in word.encode()]
            for merge in tokenizer["model"]["merges"]:
                symbols = merged(symbols, tuple(merge.split(" ")))
            ids += [vocabulary[s] for s in symbols]
    return ids
