#!/usr/bin/env python3
"""
Man pages from the comment blocks in front of public names, in PETSc's form: /*@ function, /*MC macro or type, /*E enum,
/*S struct, /*J string type.

    docs/makeman.py [FOLDER]    one Markdown page a name, and an index, in FOLDER (build/docs/manualpages)
    docs/makeman.py --check     say what is missing: a page, a part of a page, a parameter, an option; silent when nothing is

What is public is what include/petscgpucsr.h declares.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include" / "petscgpucsr.h"
KINDS = {"@": "function", "M": "type", "E": "enum", "S": "struct", "J": "string type"}
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

    def markdown(self, names):
        def links(text):
            return re.sub(r"`(\w+)(\(\))?`", lambda m: f"[{m.group(0)}]({m.group(1)}.md)" if m.group(1) in names and m.group(1) != self.name else m.group(0), text)

        out = [f"# {self.name}", "", links(self.summary[:1].upper() + self.summary[1:]) + ".", ""]
        if self.synopsis():
            out += ["```c", "#include <petscgpucsr.h>", "", self.synopsis(), "```", ""]
        if self.collective:
            out += [self.collective + ".", ""]
        for heading, body in self.sections:
            out += [f"## {heading}", ""]
            for b in body:
                item = re.match(r"[+.-] +(.+?) +- +(.*)", b)
                out.append("- `{}`: {}".format(item.group(1).strip("`"), links(item.group(2))) if item else links(b))
            while out[-1] == "":
                out.pop()
            out.append("")
        if self.seealso:
            out += ["## See also", "", links(self.seealso), ""]
        out += [f"*Level: {self.level}. Source: {self.path}, line {self.line}.*", ""]
        return "\n".join(out)


def pages():
    found = {}
    for path in [HEADER] + sorted((ROOT / "src").rglob("*.c")):
        text = path.read_text()
        for m in BLOCK.finditer(text):
            code = m.group(3)
            if m.group(1) in "ES":  # up to and with the name behind the closing brace
                code = text[m.start(3):text.index(";", text.index("\n}", m.start(3)))]
            p = Page(path.relative_to(ROOT), text.count("\n", 0, m.start()) + 1, m.group(1), m.group(2), code)
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
    return faults


def main():
    found = pages()
    if sys.argv[1:] == ["--check"]:
        faults = check(found)
        print("\n".join(faults), end="\n" if faults else "", file=sys.stderr)
        return 1 if faults else 0
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs" / "manualpages"
    folder.mkdir(parents=True, exist_ok=True)
    index = ["# Man pages", ""]
    for kind in KINDS.values():
        rows = sorted((p for p in found.values() if p.kind == kind), key=lambda p: p.name)
        if rows:
            index += [f"## {kind[0].upper() + kind[1:]}s", "", "| name | level | |", "|---|---|---|"]
            index += [f"| [{p.name}]({p.name}.md) | {p.level} | {p.summary} |" for p in rows] + [""]
    (folder / "index.md").write_text("\n".join(index))
    for p in found.values():
        (folder / f"{p.name}.md").write_text(p.markdown(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
