#!/usr/bin/env python3
"""
Products of look-alikes of the fourteen matrices of Williams, Oliker, Vuduc, Shalf, Yelick and Demmel (SC 2007): the table of docs/results/lookalikes.md.

    lookalikes.py [-o FOLDER] [RECORDS.jsonl[.xz]]
"""
import argparse, os
import records as R
import samples as S

# rows and columns in thousands, entries in millions, entries a row: their table 2
PUBLISHED = {
    "dense": "2 x 2 | 4.0 | 2000",
    "protein": "36 x 36 | 4.3 | 119",
    "spheres": "83 x 83 | 6.0 | 72",
    "cantilever": "62 x 62 | 4.0 | 65",
    "tunnel": "218 x 218 | 11.6 | 53",
    "harbor": "47 x 47 | 2.4 | 50",
    "qcd": "49 x 49 | 1.9 | 39",
    "ship": "141 x 141 | 4.0 (half of it) | 28",
    "economics": "207 x 207 | 1.3 | 6",
    "epidemic": "526 x 526 | 2.1 | 4",
    "accelerator": "121 x 121 | 2.6 | 22",
    "circuit": "171 x 171 | 1.0 | 6",
    "web": "1000 x 1000 | 3.1 | 3",
    "lp": "4 x 1093 | 11.3 | 2825",
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-o", default=S.TABLES)
    p.add_argument("records", nargs="?", default="lookalikes")
    a = p.parse_args()
    rows = {(r["matrix"], r["precision"]): r for r in R.load(a.records, "product") if r["side"] == "N" and r["matrix"].startswith("w14_")}
    out = ["| like | theirs: thousand rows, columns | million entries | a row | here: entries | chosen, double | us | best | cuSPARSE | times | chosen, single | us | times |", "| :-- | :-- | --: | --: | --: | :-- | --: | --: | --: | --: | :-- | --: | --: |"]
    for name, theirs in PUBLISHED.items():
        d, s = (rows.get(("w14_" + name, q)) for q in ("double", "single"))
        if d:
            cells = "%.2f | %s | %.2f | %.2f | %.2f | %.2f" % (1e-6 * d["nnz"], d["chosen"].replace("+", " "), d["chosen_us"], d["best_us"], d["peer_us"], d["ratio"])
            out.append("| %s | %s | %s | %s |" % (name, theirs, cells, "%s | %.2f | %.2f" % (s["chosen"].replace("+", " "), s["chosen_us"], s["ratio"]) if s else "| |"))
    S.replace(os.path.join(a.o, "lookalikes.md"), "TABLE", out)


if __name__ == "__main__":
    main()
