#!/usr/bin/env python3
"""PETSc's own examples that ask for its CUDA types, with the types of this library; or SLEPc's tutorials and tests.

    tests/petsc-examples.py [-only FILE] [-keep FOLDER] [-parts 'svd pep'] [-jobs N] [-gpus N] [-seconds N] SOURCES [LIBRARY [OPTIONS...]]

SOURCES is a tree of PETSc's sources of the release that pkg-config finds (a tarball, or `pip download petsc==3.18.4`). Of each program below, the first tests whose arguments
name aijcusparse or cuda run twice: with MATAIJ and VECSTANDARD without the library, and with gpucsr and gpu vectors. What they print must be the same, but for rounding, and
they must end alike. Of SLEPc's sources each tutorial and test runs with the arguments of each of its tests; add -mat_type gpucsr to OPTIONS. OPTIONS are added to the second run,
e.g. -mat_gpucsr_backend cuda -gpucsr_debug_standin 1; {} in them is the number of the run.
-only: the tests that FILE has a line for, FOLDER/PROGRAM SUFFIX; -keep: what is built stays in FOLDER, and need not be built again: a machine without compilers and PETSc's headers runs what lies there;
-parts: of SLEPc's sources these folders alone; -jobs: so many tests at once; -gpus: they share so many GPUs, each test on one; -seconds: no test begins later.
"""
import concurrent.futures, difflib, os, re, shlex, shutil, subprocess, sys, tempfile, time

PROGRAMS = """ksp/ksp/tests: ex43 ex60
ksp/ksp/tutorials: bench_pcsetup ex1 ex4 ex46 ex59 ex7 ex71 ex72
mat/tests: ex1 ex102 ex123 ex125 ex132 ex176 ex18 ex2 ex23 ex236 ex237 ex250 ex251 ex254 ex28 ex301 ex5 ex62 ex69 ex70
mat/tutorials: ex18
snes/tests: ex13 ex5
snes/tutorials: ex12 ex19 ex28 ex56 ex69
ts/tests: ex30
tao/constrained/tutorials: ex1"""
SLEPC = 'eps svd pep nep mfn lme sys/classes/st sys/classes/bv'
TESTS = 2  # of a program of PETSc
NUMBER = re.compile(r'[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$')


def programs(tree, parts):
    """(folder, name) of each program"""
    if not os.path.exists(os.path.join(tree, 'include', 'slepc.h')):
        return [(line.split(':')[0], name) for line in PROGRAMS.splitlines() for name in line.split(':')[1].split()]
    folders = [f'{c}/{kind}' for c in parts.split() for kind in ('tutorials', 'tests') if os.path.isdir(os.path.join(tree, 'src', c, kind))]
    return [(folder, f[:-2]) for folder in folders for f in sorted(os.listdir(os.path.join(tree, 'src', folder))) if f.endswith('.c')]


def tests_of(text):
    """(suffix, ranks, arguments) of each test in the comment /*TEST ... TEST*/, with those of its testset"""
    comment = re.search(r'/\*TEST(.*?)TEST\*/', text, re.S)
    found, stack, block = [], [], None
    for line in (comment.group(1).splitlines() if comment else []):
        if not line.strip() or line.lstrip().startswith('#'):
            continue
        indent, line = len(line) - len(line.lstrip()), line.strip()
        key, _, value = line.partition(':')
        if key in ('test', 'testset') and not value.strip():
            while stack and stack[-1]['indent'] >= indent:
                stack.pop()
            outer = stack[-1] if stack else {'args': '', 'nsize': '1', 'requires': '', 'suffix': ''}
            block = {'indent': indent, 'args': outer['args'], 'nsize': outer['nsize'], 'requires': outer['requires'], 'suffix': '', 'test': key == 'test'}
            stack.append(block)
            found.append(block)
        elif block is not None and key == 'args':
            block['args'] += ' ' + value.strip().rstrip('\\')
        elif block is not None and key == 'nsize':  # or a list: the most of them, but few
            numbers = [int(n) for n in re.findall(r'\d+', value)]
            block[key] = str(max([n for n in numbers if n <= 3] or numbers))
        elif block is not None and key == 'requires':
            block['requires'] += ' ' + value.strip()
        elif block is not None and key == 'suffix':
            block[key] = value.strip()
    return [b for b in found if b['test']]


def any_of(args, requires=''):
    """The first of each list in braces; None: it needs what is not here"""
    if re.search(r'(?<!!)\b(complex|single|__float128|cuda|c99_complex)\b', requires):
        return None
    args = re.sub(r'\{\{\s*([^\s{}]+)[^{}]*\}[^{}]*\}', r'\1', args)
    return None if re.search(r'DATAFILES|cuda|SLEPC_DIR|superlu|mumps|pastix|scalapack|elpa|arpack|blopex|primme|trlan|hpddm|feast|evsl|slicot|library_preload', args) else args


def chosen(args):
    """The first of each list in braces; None: not one of CUDA's, or it needs what is not here"""
    args = re.sub(r'\{\{\s*([^\s{}]+)[^{}]*\}[^{}]*\}', r'\1', args)
    if not re.search(r'aijcusparse|cuda', args) or re.search(r'DATAFILES|wPETSC|kokkos|hypre|amgx|magma|_cusparse_|nvshmem|gpu_aware', args.replace('-use_gpu_aware_mpi 0', '')):
        return None
    return args.replace('-use_gpu_aware_mpi 0', '')


def ours(args, yes):
    args = re.sub(r'\b(seq|mpi)?aijcusparse\b', lambda m: (m.group(1) + 'aij' if m.group(1) else '') + 'gpucsr' if yes else (m.group(1) or '') + 'aij', args)
    args = re.sub(r'\b(seq|mpi)?densecuda\b', lambda m: (m.group(1) or '') + 'dense', args)
    args = re.sub(r'(-\S*mat_solver_type) cusparse', r'\1 petsc', args)
    args = re.sub(r'-\w*_view(?= |$)( [:a-z]\S*)?', '', args)  # views name what is ours
    return re.sub(r'(?<=\s)(seq|mpi)?cuda\b', lambda m: (m.group(1) or '') + 'gpu' if yes else (m.group(1) or 'standard'), args)


def alike(a, b, views):
    """The same words, numbers to six digits, whatever the names of types and what views, if there are any, say of a matrix"""
    a, b = ('\n'.join(line for line in re.sub(r'0x[0-9a-f]+', '0x', t).splitlines() if not views or not line.startswith('    ')) for t in (a, b))
    a, b = ([re.sub(r'(seq|mpi)gpu$', r'\1', re.sub(r'(seq|mpi)?(aij)?gpucsr', r'\1aij', w)).strip('.,;:()[]') for w in t.split()] for t in (a, b))
    if len(a) != len(b):
        return False
    for x, y in zip(a, b):
        if x != y and not (NUMBER.match(x) and NUMBER.match(y) and abs(float(x) - float(y)) <= 1e-6 * max(abs(float(x)), abs(float(y))) + 1e-9):
            return False
    return True


def option(name):
    """The value of an option before SOURCES, which is taken out"""
    if len(sys.argv) > 2 and sys.argv[1] == name:
        del sys.argv[1]
        return sys.argv.pop(1)
    return None


def chosen_tests(tree, parts, only):
    """(program, test, arguments) of each test that is to run"""
    slepc = os.path.exists(os.path.join(tree, 'include', 'slepc.h'))
    rows = []
    for folder, name in programs(tree, parts or SLEPC):
        with open(os.path.join(tree, 'src', folder, name + '.c')) as f:
            tests = [(t, any_of(t['args'], t['requires']) if slepc else chosen(t['args'])) for t in tests_of(f.read())]
        tests = [(f'{folder}/{name}', t, a) for t, a in tests if a is not None and (not only or (f'{folder}/{name}', t['suffix']) in only)]
        rows += tests if only or slepc else tests[:TESTS]
    return rows


def build(tree, names, folder):
    """{program: what the compiler said} of those that are not in FOLDER yet and cannot be built"""
    failed, flags = {}, None
    for name in names:
        program = os.path.join(folder, name.replace('/', '-'))
        if os.path.exists(program):
            continue
        if flags is None:
            slepc = ['slepc'] if os.path.exists(os.path.join(tree, 'include', 'slepc.h')) else []
            known = subprocess.run(['pkg-config', '--cflags', '--libs', os.environ.get('PETSC', 'PETSc')] + slepc, capture_output=True, text=True) if shutil.which('pkg-config') else None
            flags = known.stdout.split() if known and not known.returncode else []
            flags += ['-Wl,-rpath,' + f[2:] for f in flags if f.startswith('-L')]
        if not flags or not shutil.which('mpicc'):
            failed[name] = 'no mpicc, or pkg-config does not know PETSc'
            continue
        os.makedirs(folder, exist_ok=True)
        built = subprocess.run(['mpicc', '-O0', '-w', '-I' + os.path.join(tree, 'include'), os.path.join(tree, 'src', name + '.c'), '-o', program] + flags + ['-llapack', '-lblas', '-lm'], capture_output=True, text=True)
        if built.returncode:
            failed[name] = built.stderr.strip().splitlines()[:1]
    return failed


def launch(program, test, words, options, cwd, gpu):
    """(status, stdout, stderr) of a run"""
    mpiexec = shlex.split(os.environ.get('MPIEXEC', 'mpiexec --allow-run-as-root --oversubscribe')) + ['-n', test['nsize']] if test['nsize'] != '1' else []
    env = dict(os.environ, OMP_NUM_THREADS=os.environ.get('OMP_NUM_THREADS', '1'), PETSC_OPTIONS=options)
    if gpu is not None:
        env['CUDA_VISIBLE_DEVICES'] = str(gpu)
    try:
        run = subprocess.run(mpiexec + [program] + shlex.split(words), env=env, cwd=cwd, capture_output=True, text=True, errors='replace', timeout=100)
        return run.returncode, run.stdout, run.stderr
    except subprocess.TimeoutExpired:
        return 124, '', 'took more than 100 seconds'


def judge(name, words, plain, with_it, slepc, used):
    """(result, what to print)"""
    if plain[0] and with_it[0]:
        result = 'both end in an error'
    else:
        result = 'same' if plain[0] == with_it[0] and alike(plain[1], with_it[1], not slepc) else 'OTHER'
    said = [f'{result}: {name}: {used:.2f} s: {words.strip()}']
    if result.startswith('both'):
        said.append('  ' + ' '.join(re.findall(r'PETSC ERROR: (?!-)(.*)', plain[2])[:2]))
    if result == 'OTHER':
        said.append(f'  status {plain[0]} and {with_it[0]}; without the library (-) and with it (+):')
        said += list(difflib.unified_diff(plain[1].splitlines(), with_it[1].splitlines(), n=0, lineterm=''))[2:42] + [with_it[2][:900]]
    return result, '\n'.join(said)


def main():
    only, keep, parts = option('-only'), option('-keep'), option('-parts')
    jobs, gpus, limit = int(option('-jobs') or 1), int(option('-gpus') or 0), float(option('-seconds') or 'inf')
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if only:
        with open(only) as f:
            only = {tuple(line.split()) for line in f if line.strip() and not line.startswith('#')}
    slepc = os.path.exists(os.path.join(sys.argv[1], 'include', 'slepc.h'))
    tree, lib = sys.argv[1], os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else 'build/lib/libpetscgpucsr.so')
    count, begin = {'same': 0, 'both end in an error': 0, 'not built': 0, 'OTHER': 0}, time.time()

    def run(row):
        number, (name, test, args) = row
        what, start = f'{name} {test["suffix"]}', time.time()
        if name in failed:
            return 'not built', f'not built: {what} {failed[name]}'
        if time.time() - begin > limit:
            return 'not begun', f'not begun: {what}'
        program, cwd, gpu = os.path.join(folder, name.replace('/', '-')), os.path.dirname(os.path.join(tree, 'src', name)), number % gpus if gpus else None
        said = [launch(program, test, ours(args, yes), f'-dll_append {lib} ' + ' '.join(sys.argv[3:]).replace('{}', str(number)) if yes else '', cwd, gpu) for yes in (False, True)]
        return judge(what, ours(args, True), said[0], said[1], slepc, time.time() - start)

    with tempfile.TemporaryDirectory() as tmp, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        folder = os.path.abspath(keep or tmp)
        rows = chosen_tests(tree, parts, only)
        failed = build(tree, dict.fromkeys(name for name, _, _ in rows), folder)
        for result, text in pool.map(run, enumerate(rows)):
            count[result] = count.get(result, 0) + 1
            print(text, flush=True)
    print(', '.join(f'{n} {k}' for k, n in count.items()))
    sys.exit(1 if count['OTHER'] else 0)


main()
