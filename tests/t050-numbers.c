//TEST args="-trials 300000"

/*
  Decimal numbers are read correctly to the last bit: GPUCSRReal() against strtod(), on numbers that are hard to round, on random numbers of every length and magnitude,
  and in a locale whose point is a comma.
*/
#include <petscsys.h>
#include <locale.h>
#include <math.h>
#include "../src/io/formats/number.h"

static PetscErrorCode Check(const char *number)
{
  char        text[6000];
  const char *stop;
  double      v = 0, w = strtod(number, NULL);
  size_t      n = strlen(number);

  PetscFunctionBeginUser;
  memcpy(text, number, n);
  text[n] = '\n';
  stop    = GPUCSRReal(text, text + n + 1, &v);
  PetscCheck(stop == text + n && !memcmp(&v, &w, sizeof(v)), PETSC_COMM_SELF, PETSC_ERR_PLIB, "'%s': read as %a, is %a", number, v, w);
  PetscFunctionReturn(0);
}

static PetscErrorCode Refused(const char *word)
{
  char        text[6000];
  const char *stop;
  double      v;
  size_t      n = strlen(word);

  PetscFunctionBeginUser;
  memcpy(text, word, n);
  text[n] = '\n';
  stop    = GPUCSRReal(text, text + n + 1, &v);
  PetscCheck(stop != text + n, PETSC_COMM_SELF, PETSC_ERR_PLIB, "'%s' was read as the number %g", word, v);
  PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
  /* ties and their neighbours, the ends of the range, the edges between the three ways of reading */
  static const char *const hard[]  = {"0", "-0", "+1", "1.", ".5", "-.5e1", "00012", "1e0", "1E+05", "9007199254740992", "9007199254740993", "9007199254740991e22", "9007199254740993e-22", "1e22", "1e23", "8.5e27", "1e-22", "1e-23", "1e-27", "1e-28", "1e27", "1e28", "0.1", "0.30000000000000004", "5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400", "1.7976931348623157e308", "2.2250738585072011e-308", "2.2250738585072014e-308", "9223372036854775807", "9999999999999999999", "18446744073709551615", "18446744073709551616", "12345678901234567890123456789", "0.000000000000000000000000000000000000012345678901234567", "6929495644600919.5", "3.7455744005952583e15", "179769313486231570e291", "1.00000000000000011102230246251565404236316680908203125", "1.00000000000000011102230246251565404236316680908203124", "1.00000000000000011102230246251565404236316680908203126", "4503599627370496.5", "4503599627370497.5", "0.500000000000000166533453693773481063544750213623046875"};
  static const char *const wrong[] = {"", "-", ".", "e5", "1e", "1e+", "--1", "+-1", "1e400", "-1e309", "179769313486231580793e289", "nan", "inf", "0x10", "1,5", "1.5.2", "1e5.5", "1d5", "1_000"};
  PetscInt                 trials  = 1000;
  uint64_t                 x       = 1;
  char                     text[5000];

  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-trials", &trials, NULL));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(hard); k++) PetscCall(Check(hard[k]));
  for (size_t k = 0; k < PETSC_STATIC_ARRAY_LENGTH(wrong); k++) PetscCall(Refused(wrong[k]));
  for (PetscInt k = 0; k < trials; k++) {
    double v;

    x = x * 6364136223846793005u + 1442695040888963407u;
    memcpy(&v, &x, 8);
    if (k % 2) v = ((double)(int64_t)x) * pow(10, (double)(k % 61) - 48); /* of a size that data have */
    if (!isfinite(v)) continue;
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.*g", 1 + (int)(k % 20), v));
    if (isfinite(strtod(text, NULL))) PetscCall(Check(text)); /* rounded to few digits it may be too large */
    PetscCall(PetscSNPrintf(text, sizeof(text), "%.*f", (int)(k % 25), fmod(v, 1e6)));
    PetscCall(Check(text));
  }
  memset(text, '7', 4096); /* the longest that is taken */
  text[1]    = '.';
  text[4096] = 0;
  PetscCall(Check(text));
  text[4096] = '7';
  text[4097] = 0;
  PetscCall(Refused(text));
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8") || setlocale(LC_NUMERIC, "fr_FR.UTF-8")) {
    const char *number = "1.5e-300\n";
    double      v;

    PetscCheck(GPUCSRReal(number, number + 9, &v) && v == 15 / 1e301 * 1, PETSC_COMM_SELF, PETSC_ERR_PLIB, "in the locale %s 1.5e-300 is read as %g", setlocale(LC_NUMERIC, NULL), v);
    setlocale(LC_NUMERIC, "C");
  }
  PetscCall(PetscFinalize());
  return 0;
}
