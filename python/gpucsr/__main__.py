"""python -m gpucsr [--options]: prints which PETSc and GPU were found, and a line that sets PETSC_OPTIONS; --options prints only the options"""
import subprocess
import sys

from . import __version__, library, options, petsc


def found_petsc():
    """(version, place) of petsc4py's PETSc, otherwise of pkg-config's, or None"""
    try:
        import petsc4py

        config = petsc4py.get_config()
        from petsc4py import PETSc

        return ".".join(map(str, PETSc.Sys.getVersion())), config.get("PETSC_DIR") or petsc4py.__file__
    except ImportError:
        pass
    for name in ("PETSc", "petsc"):
        try:
            where = subprocess.run(["pkg-config", "--modversion", "--variable=prefix", name], capture_output=True, text=True).stdout.split()
            number = subprocess.run(["pkg-config", "--modversion", name], capture_output=True, text=True).stdout.strip()
        except OSError:
            return None
        if number:
            return number, where[-1]
    return None


def found_gpu():
    try:
        gpus = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
        return [] if gpus.returncode else gpus.stdout.strip().splitlines()
    except OSError:
        return []


def main():
    if sys.argv[1:] == ["--options"]:
        print(options())
        return 0
    if sys.argv[1:]:
        print(__doc__, file=sys.stderr)
        return 2
    print(f"gpucsr {__version__}, built for PETSc {petsc}: {library()}" if petsc else f"gpucsr, in a clone: {library()}")
    here = found_petsc()
    if not here:
        print("PETSc: not found by petsc4py or pkg-config")
    else:
        fits = not petsc or here[0].split(".")[:2] == petsc.split(".")[:2]
        print(f"PETSc: {here[0]} in {here[1]}" + ("" if fits else f". The library does not fit it: build gpucsr against it"))
    for gpu in found_gpu():
        print(f"GPU:   {gpu.replace(', ', ', driver ')}")
    if not found_gpu():
        print("GPU:   none found: matrices stay on the CPU")
    print(f'\nexport PETSC_OPTIONS="{options()}"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
