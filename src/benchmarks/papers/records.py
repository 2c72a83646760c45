"""Lines of JSON as the benchmark programs leave them, and tables in Markdown"""
import json, lzma, os
import samples as S


def load(name, record):
    """The records of that name (None: all), of FILE or docs/results/FILE.jsonl.xz; a line that was cut short ends the program"""
    path = name if os.path.exists(name) else os.path.join(S.RESULTS, name + ".jsonl.xz")
    try:
        with (lzma.open if path.endswith(".xz") else open)(path, "rt") as f:
            rows = [json.loads(line) for line in f]
    except (OSError, EOFError, ValueError, lzma.LZMAError) as e:
        raise SystemExit("%s: %s: the benchmark writes one anew" % (path, e))
    return [r for r in rows if record in (None, r.get("record"))]


def table(heads, rows):
    """heads: words, those that begin with < are aligned to the left"""
    out = ["| " + " | ".join(h.lstrip("<") for h in heads) + " |", "| " + " | ".join(":--" if h.startswith("<") else "--:" for h in heads) + " |"]
    return out + ["| " + " | ".join(str(c) for c in r) + " |" for r in rows]


def figures(v, digits=3):
    """A number with so many figures, and no exponent"""
    return "%.*f" % (max(0, digits - len("%d" % abs(v))), v)
