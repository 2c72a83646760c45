#!/usr/bin/env python3
"""Tables of run.sh's lines: table.py coo.jsonl"""
import json
import sys


def ratio(a, b):
    return f"{a / b:.2f}" if a and b else "-"


def main():
    rows = [json.loads(line) for line in open(sys.argv[1]) if line.strip()]
    of = lambda record: [r for r in rows if r["record"] == record]
    coo, peer = of("coo"), {r["problem"]: r for r in of("coo") if r["type"] != "gpucsr"}
    print("problem  type         contributions  pattern ms  times  host ms  device ms  times   right")
    for r in coo:
        p = peer.get(r["problem"], {})
        print(f"{r['problem']:8} {r['type']:12} {r['contributions']:13}  {r['pattern_ms']:10.1f}  {ratio(p.get('pattern_ms'), r['pattern_ms']):>5}  {r['host_ms']:7.2f}  {r['device_ms']:9.3f}"
              f"  {ratio(p.get('device_ms'), r['device_ms']):>5}   {r['right']}")
    print("\nproblem  type         master  values ms  product ms  solve ms  step ms  iterations  residual  copies")
    for r in of("newton"):
        print(f"{r['problem']:8} {r['type']:12} {r['master']:6}  {r['values_ms']:9.3f}  {r['product_ms']:10.3f}  {r['solve_ms']:8.2f}  {r['step_ms']:7.2f}  {r['iterations']:10}  {r['residual']:8}  {r['copies']:6}")
    for r in of("bytes"):
        print(f"values of matrices over the bus with master {r['master']}: sent {r['sent_mb']} MB, brought back {r['back_mb']} MB")
    print("\nproblem  entries    operation      ms        GB/s   of the copy rate (first the host's master, then the device's)")
    for r in of("inplace"):
        print(f"{r['problem']:8} {r['entries']:9}  {r['operation']:13} {r['ms']:8.4f}  {r['gbs']:7.1f}   {r['share']:.2f}")
    print("\nelement     type    ranks  unknowns  layout      assembly ms  setup ms  solve ms  iterations  residual  copies  times")
    for r in of("stokes"):
        element = r.get("element", "staggered")
        host = [p["solve_ms"] for p in of("stokes") if p["type"] == "aij" and p.get("element", "staggered") == element]
        print(f"{element:10}  {r['type']:7} {r['ranks']:5}  {r['unknowns']:8}  {'nest' if r['nest'] else 'interlaced' if r['interlaced'] else 'fields':10}  {r.get('assembly_ms', 0):11.1f}  {r['setup_ms']:8.1f}  {r['solve_ms']:8.2f}"
              f"  {r['iterations']:10}  {r['residual']:8}  {r['copies']:6}  {ratio(host[0] if host else 0, r['solve_ms']):>5}")


main()
