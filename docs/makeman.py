#!/usr/bin/env python3
"""
Man pages from the comment blocks in front of public names, in PETSc's form: /*@ function, /*MC macro or type, /*E enum,
/*S struct, /*J string type.

    docs/makeman.py [FOLDER]    pages and an index in FOLDER (build/docs): manualpages/ in Markdown, html/, man1/ and man3/ for man
    docs/makeman.py --check     say what is missing: a page, a part of a page, a parameter, an option; silent when nothing is

Public names are those that include/petscgpucsr.h declares. {formats} and {kernels} in a block stand for the names in formatlist.h and kernellist.h.
"""
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include" / "petscgpucsr.h"
KINDS = {"@": "function", "M": "type", "E": "enum", "S": "struct", "J": "string type"}
NAME = re.compile(r"`(\w+)(\(\))?`")
BLOCK = re.compile(r"^/\*([@MESJ])C?\n(.*?)^\1\*/\n(.*?)(?=^\}|;|^#|\Z)", re.S | re.M)
COLLECTIVE = re.compile(r"(Not|Logically|Neighbor-wise)? ?Collective\b.*", re.I)
SECTION = re.compile(r"(Input Parameters?|Output Parameters?|Input/Output Parameters?|Values|Options Database Keys?|Notes?|Developer Notes?|Example Usage|References?):$")


class Page:
    """One block: its name and sentence, collectivity, sections in their order, level, see-also line, and what follows it"""

    def __init__(self, path, line, kind, text, code):
        self.path, self.line, self.kind, self.code = path, line, KINDS[kind], code.strip()
        self.collective, self.level, self.seealso, self.sections = "", "", "", []
        lines = text.strip("\n").split("\n")
        self.name, _, self.summary = lines[0].strip().partition(" - ")
        section = []
        for raw in lines[1:]:
            s = raw.strip()
            if s.startswith(".seealso:"):
                self.seealso = s[len(".seealso:"):].strip()
            elif s.startswith("Level:"):
                self.level = s[len("Level:"):].strip()
            elif SECTION.match(s):
                section = []
                self.sections.append((s[:-1], section))
            elif not self.sections and not self.collective and COLLECTIVE.fullmatch(s):
                self.collective = s
            elif self.sections:
                section.append(raw[2:] if raw.startswith("  ") else raw)
            elif s:
                self.summary += " " + s

    def items(self, heading):
        """Names in the lists of the sections whose heading contains this"""
        return {m.group(1) for h, body in self.sections if heading in h for b in body if (m := re.match(r"[+.-] +(\S+).*? +- ", b))}

    def parameters(self):
        """Names in the definition that follows the block"""
        head = re.match(r"PetscErrorCode \w+\((.*)\)\s*\{", self.code.replace("\n", " "))
        if not head or head.group(1) == "void":
            return []
        return [re.search(r"(\w+)(\[\])?$", p.strip()).group(1) for p in head.group(1).split(",")]

    def faults(self):
        where = f"{self.path}:{self.line}: man page of {self.name}"
        if not self.summary:
            yield f"{where}: the first line is not NAME - one sentence"
        if not self.level:
            yield f"{where}: no Level:"
        if not self.seealso:
            yield f"{where}: no .seealso:"
        if self.kind != "function":
            return
        if not self.collective:
            yield f"{where}: does not say whether the call is collective"
        listed = self.items("Parameter")
        for p in self.parameters():
            if p not in listed:
                yield f"{where}: parameter {p} is in no list of Input or Output Parameters"
        for p in sorted(listed - set(self.parameters())):
            yield f"{where}: lists a parameter {p} that the function does not have"

    def synopsis(self):
        if self.kind == "function":
            return self.code.split("{")[0].strip() + ";"
        if self.kind in ("enum", "struct"):
            return self.code + ";" if self.code.startswith("typedef") and "}" in self.code else ""
        return ""

    def parts(self):
        """The page as (kind, text): code, heading, item (a name and its text), text"""
        yield "text", self.summary[:1].upper() + self.summary[1:] + "."
        if self.synopsis():
            yield "code", "#include <petscgpucsr.h>\n\n" + self.synopsis()
        if self.collective:
            yield "text", self.collective + "."
        for heading, body in self.sections:
            yield "heading", heading
            paragraph = []
            for b in body + [""]:
                item = re.match(r"[+.-] +(.+?) +- +(.*)", b)
                if (item or not b.strip()) and paragraph:
                    yield "text", "\n".join(paragraph)
                    paragraph = []
                if item:
                    yield "item", (item.group(1).strip("`"), item.group(2))
                elif b.strip():
                    paragraph.append(b)
        if self.seealso:
            yield "heading", "See also"
            yield "text", self.seealso

    def markdown(self, names):
        def links(text):
            return NAME.sub(lambda m: f"[{m.group(0)}]({m.group(1)}.md)" if m.group(1) in names and m.group(1) != self.name else m.group(0), text)

        out, before = [f"# {self.name}"], ""
        for kind, text in self.parts():
            if not before == kind == "item":
                out.append("")
            before = kind
            out.append({"text": lambda: links(text), "code": lambda: f"```c\n{text}\n```", "heading": lambda: f"## {text}", "item": lambda: f"- `{text[0]}`: {links(text[1])}"}[kind]())
        return "\n".join(out + ["", f"*Level: {self.level}. Source: {self.path}, line {self.line}.*", ""])

    def html(self, names):
        def rich(text):
            def mark(m):
                code = f"<code>{m.group(1)}</code>"
                known = re.match(r"(\w+)(\(\))?$", m.group(1))
                return f'<a href="{known.group(1)}.html">{code}</a>' if known and known.group(1) in names and known.group(1) != self.name else code

            return re.sub(r"`([^`]+)`", mark, escape(text))

        out, listing = [f"<!DOCTYPE html>\n<html lang=en><meta charset=utf-8><title>{self.name}</title>\n<h1>{self.name}</h1>"], False
        for kind, text in self.parts():
            if listing != (kind == "item"):
                listing = not listing
                out.append("<dl>" if listing else "</dl>")
            out.append({"text": lambda: f"<p>{rich(text)}</p>", "code": lambda: f"<pre>{escape(text)}</pre>", "heading": lambda: f"<h2>{text}</h2>", "item": lambda: f"<dt><code>{escape(text[0])}</code><dd>{rich(text[1])}"}[kind]())
        return "\n".join(out + ["</dl>"] * listing + [f"<p><i>Level: {self.level}</i></p>", ""])

    def man(self, version):
        def plain(text):
            text = text.replace("\\", "\\e").replace("-", "\\-")
            text = re.sub(r"`([^`]+)`", r"\\fB\1\\fR", text)
            return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)

        out = [f'.TH {self.name} 3 "" "gpucsr {version}" "gpucsr"', ".SH NAME", plain(f"{self.name} - {self.summary}").replace("\n", " ").replace(" \\- ", " \\- ", 1)]
        section = ".SH DESCRIPTION"
        for kind, text in list(self.parts())[1:]:
            if kind == "code":
                out += [".SH SYNOPSIS", ".nf", plain(text), ".fi"]
            elif kind == "heading":
                out += [f".SH {text.upper()}"]
                section = ""
            elif kind == "item":
                out += [".TP", plain(f"`{text[0]}`"), plain(text[1])]
            else:
                out += [section or ".PP", plain(text)]
                section = ""
        return "\n".join(out + [""])


# Name, source, what it does
PROGRAMS = [("gpucsr-convert", "src/bin/convert.c", "convert a sparse matrix between file formats"),
            ("gpucsr-advise", "src/bin/advise.c", "predict what products of a matrix take on the CPU and on GPUs"),
            ("bmrm", "src/learn/bmrm.c", "learn linear models by regularised risk minimisation")]


def program(name, source, what, version):
    """Its page of section 1, from the usage that it prints; of a program of PETSc's, from its help and the comment below"""
    source = (ROOT / source).read_text()
    said, comment = re.search(r"(?:usage|help)\[\] *=(.*?);\n(?:\n/\*\n(.*?)\*/)?", source, re.S).groups()
    usage = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', said)).replace("\\n", "\n").replace('\\"', '"')
    if not usage.startswith("Usage: "):
        usage = f"Usage: {name} -f FILE [OPTIONS]\n{usage}{comment}"
    synopsis, _, text = usage.partition("\n")
    text = text.strip("\n").replace("\\", "\\e").replace("-", "\\-")
    name = name.replace("-", "\\-")
    head = [f'.TH {name} 1 "" "gpucsr {version}" "gpucsr"', ".SH NAME", f"{name} \\- {what}"]
    return "\n".join(head + [".SH SYNOPSIS", synopsis.replace("Usage: ", "").replace("-", "\\-"), ".SH DESCRIPTION", ".nf", re.sub(r"^([.'])", r"\\&\1", text, flags=re.M), ".fi", ""])


def rows(name, word):
    """The names in the rows of the one list of this name below src/"""
    text = next((ROOT / "src").rglob(name)).read_text()
    return ", ".join(re.findall(rf"^{word}\((\w+),", text, re.M))


def pages():
    found, lists = {}, {"{formats}": rows("formatlist.h", "GPUCSR_FORMAT"), "{kernels}": rows("kernellist.h", "GPUCSR_KERNEL")}
    for path in [HEADER] + sorted((ROOT / "src").rglob("*.c")):
        text = path.read_text()
        for m in BLOCK.finditer(text):
            code = m.group(3)
            if m.group(1) in "ES":  # up to and with the name behind the closing brace
                code = text[m.start(3):text.index(";", text.index("\n}", m.start(3)))]
            block = re.sub(r"\{\w+\}", lambda word: lists.get(word[0], word[0]), m.group(2))
            p = Page(path.relative_to(ROOT), text.count("\n", 0, m.start()) + 1, m.group(1), block, code)
            found[p.name] = p
    return found


def check(found):
    text = HEADER.read_text()
    faults = [f for p in found.values() for f in p.faults()]
    for name in re.findall(r"^GPUCSR_EXTERN PetscErrorCode (\w+)\(", text, re.M):
        if name not in found or found[name].kind != "function":
            faults.append(f"include/petscgpucsr.h: {name}() has no man page: put a /*@ block in front of its definition")
    for name in re.findall(r"^\} (\w+);", text, re.M):
        if name not in found:
            faults.append(f"include/petscgpucsr.h: {name} has no man page: put a /*E or /*S block in front of it")
    for name in re.findall(r"^#define (MAT\w*GPUCSR) +\"", text, re.M):
        if name not in found and name != "MATAIJGPUCSR":  # another word for MATGPUCSR, named on its page
            faults.append(f"include/petscgpucsr.h: {name} has no man page: put a /*MC block in front of what creates it")
    options = (ROOT / "docs" / "options.md").read_text()
    sources = "".join(p.read_text() for p in (ROOT / "src").rglob("*.c") if "benchmarks" not in p.parts)
    paged = set().union(*(p.items("Options") for p in found.values()))
    helped = set(re.findall(r'PetscOptions(?!Get|Has)\w+(?:\(|, )"(-\w+)"', sources))
    for option in sorted(set(re.findall(r'"(-(?:mat_gpucsr|vec_gpu|ksp_gpu[a-z]+|tao_gpubmrm|gpucsr_file)_\w+)"', sources))):
        if option not in paged:
            faults.append(f"man pages: none lists the option {option}")
        if option not in helped:
            faults.append(f"-help: the option {option} is read without a PetscOptions...() that shows it")
        if f"`{option}`" not in options:
            faults.append(f"docs/options.md: lacks the option {option}")
        if option.startswith("-mat_gpucsr_"):
            if option not in found["MATGPUCSR"].items("Options"):
                faults.append(f"MATGPUCSR's man page: lacks the option {option}")
    testing = (ROOT / "docs" / "testing.md").read_text()
    for option in sorted(set(re.findall(r'"(-pc_\w*gpucsr\w*|-gpucsr_\w*[a-z])"', sources))):
        if f"`{option}`" not in options and option not in testing:
            faults.append(f"docs: no page has a row for the option {option}")
    return faults


def main():
    found = pages()
    if sys.argv[1:] == ["--check"]:
        faults = check(found)
        print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
        return 1 if faults else 0
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"
    version = re.search(r'PETSCGPUCSR_VERSION +"(.*)"', HEADER.read_text()).group(1)
    for name in ("manualpages", "html", "man1", "man3"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    index, html = ["# Man pages", ""], ["<!DOCTYPE html>", "<html lang=en><meta charset=utf-8><title>gpucsr: man pages</title>", "<h1>Man pages</h1>"]
    for kind in KINDS.values():
        rows = sorted((p for p in found.values() if p.kind == kind), key=lambda p: p.name)
        if rows:
            heading = f"{kind[0].upper() + kind[1:]}s"
            index += [f"## {heading}", "", "| name | level | |", "|---|---|---|"]
            index += [f"| [{p.name}]({p.name}.md) | {p.level} | {p.summary} |" for p in rows] + [""]
            html += [f"<h2>{heading}</h2>", "<dl>", *(f'<dt><a href="{p.name}.html"><code>{p.name}</code></a><dd>{escape(p.summary)}' for p in rows), "</dl>"]
    (folder / "manualpages" / "index.md").write_text("\n".join(index))
    for name, source, what in PROGRAMS:
        (folder / "man1" / f"{name}.1").write_text(program(name, source, what, version))
    (folder / "html" / "index.html").write_text("\n".join(html + [""]))
    for p in found.values():
        (folder / "manualpages" / f"{p.name}.md").write_text(p.markdown(found))
        (folder / "html" / f"{p.name}.html").write_text(p.html(found))
        (folder / "man3" / f"{p.name}.3").write_text(p.man(version))
    return 0


if __name__ == "__main__":
    sys.exit(main())
