//TEST args="-mutations 100"

/*
  A short fuzz test of the readers without libFuzzer: each seed of tests/fuzz/seeds/read, then a fixed set of mutations of each, through tests/fuzz/read.c. That aborts if a file
  read in small blocks differs from the same file read at once. tests/fuzz/run.sh is the long test, with sanitizers.
*/
#include "fuzz/read.c"
#include <dirent.h>
#include <stdio.h>

enum {
  LONGEST = 1 << 16
};

static uint64_t state;

static size_t Random(size_t n)
{
  state = state * 6364136223846793005u + 1442695040888963407u;
  return n ? (size_t)(state >> 33) % n : 0;
}

/* One change: a byte, a bit, a part cut out, a part twice, a word that formats give a meaning to, another seed's end */
static size_t Mutate(uint8_t data[], size_t n, const uint8_t other[], size_t nother)
{
  static const char *const words[] = {"\n", " ", "1", "0", "-1", "9999999999999999999", ":", "#", "%", "qid:", "nan", "1e999", "(3(1X,E9.3))", "(1P,5E16.8)", "symmetric", "\0\0\0\1", "\xff\xff\xff\xff"};
  const size_t             at = Random(n), many = 1 + Random(16), k = Random(sizeof(words) / sizeof(words[0]));
  const size_t             length = k == sizeof(words) / sizeof(words[0]) - 2 ? 4 : strlen(words[k]);

  switch (Random(6)) {
  case 0:
    data[at] = (uint8_t)Random(256);
    return n;
  case 1:
    data[at] ^= (uint8_t)(1 << Random(8));
    return n;
  case 2:
    if (at + many >= n) return at;
    memmove(data + at, data + at + many, n - at - many);
    return n - many;
  case 3:
    if (at + many > n || n + many > LONGEST) return n;
    memmove(data + at + many, data + at, n - at);
    return n + many;
  case 4:
    if (n + length > LONGEST) return n;
    memmove(data + at + length, data + at, n - at);
    memcpy(data + at, words[k], length);
    return n + length;
  default:
    if (!nother || at + nother > LONGEST) return n;
    k < 4 ? memcpy(data + at, other + Random(nother) / 2, nother / 2) : memcpy(data + at, other + nother / 2, nother / 2);
    return at + nother / 2;
  }
}

int main(int argc, char **argv)
{
  static uint8_t  seed[128][LONGEST], data[LONGEST];
  static size_t   length[128];
  const char     *folder    = "tests/fuzz/seeds/read";
  const size_t    mutations = argc > 2 ? (size_t)atol(argv[2]) : 100;
  struct dirent **entry;
  int             seeds = 0, files = scandir(folder, &entry, NULL, alphasort);

  if (files < 3) return fprintf(stderr, "%s holds no seeds\n", folder), 1;
  for (int k = 0; k < files && seeds < 128; k++) {
    char  name[512];
    FILE *in;

    snprintf(name, sizeof(name), "%s/%s", folder, entry[k]->d_name);
    free(entry[k]);
    in = name[strlen(folder) + 1] == '.' ? NULL : fopen(name, "rb");
    if (!in) continue;
    length[seeds] = fread(seed[seeds], 1, LONGEST, in);
    fclose(in);
    seeds++;
  }
  free(entry);
  for (int k = 0; k < seeds; k++) {
    LLVMFuzzerTestOneInput(seed[k], length[k]);
    for (size_t m = 0; m < mutations; m++) {
      size_t n = length[k];

      state = (uint64_t)k << 32 | m;
      memcpy(data, seed[k], n);
      for (size_t times = 1 + Random(4); times && n; times--) {
        const size_t other = Random((size_t)seeds);

        n = Mutate(data, n, seed[other], length[other]);
      }
      LLVMFuzzerTestOneInput(data, n);
    }
  }
  return 0;
}
