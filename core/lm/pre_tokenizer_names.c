/* pre_tokenizer_names.c - the pre-tokenizers that GGUF files name. */
#include "lm/pre_tokenizer.h"
#include <string.h>

/* The names are llama.cpp's, the patterns the models' own. */
#define WORDS_GPT2                                                   \
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]" \
  "+|\\s+(?!\\S)|\\s+"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define REST "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CAMEL(ending)                                 \
  "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" ending \
  "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" ending
#define PUNCTUATION "[\\p{P}\\$\\+<=>\\^~\\|`]+"

static const sl_pre_step gpt2[] = { { .pattern = WORDS_GPT2 } };
static const sl_pre_step llama3[] = {
  { .pattern = CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
                            "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST }
};
static const sl_pre_step qwen2[] = {
  { .pattern = CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                            "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" REST }
};
static const sl_pre_step starcoder[] = { { .pattern = "\\p{N}" },
                                         { .pattern = WORDS_GPT2 } };
/* The last two steps cut the letters that stand for bytes: that of byte 0xb2
** is a digit to them. */
static const sl_pre_step falcon[] = { { .pattern = PUNCTUATION },
                                      { .pattern = WORDS_GPT2 },
                                      { .kind = SL_PRE_LETTERS },
                                      { .pattern = "\\p{N}+" },
                                      { .pattern = "[0-9][0-9][0-9]" } };
static const sl_pre_step plain[] = {
  { .pattern = "[\\p{P}\\$\\+<=>\\^~\\|]+" },
  { .pattern = WORDS_GPT2 },
  { .pattern = "\\p{N}+" },
  { .pattern = "[0-9][0-9][0-9]" },
};
static const sl_pre_step gpt4o[] = {
  { .pattern =
        CAMEL ("(?i:'s|'t|'re|'ve|'m|'ll|'d)?") "|\\p{N}{1,3}| ?[^\\s\\p{L}"
                                                "\\p{N}]+[\\r\\n/]*" REST }
};
static const sl_pre_step tekken[] = {
  { .pattern = CAMEL ("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*" REST }
};
static const sl_pre_step bloom[] = { { .pattern =
                                           " ?[^(\\s|.,!?…。，、।۔،)]+" } };

static const struct {
  const char *name;
  size_t n;
  const sl_pre_step *steps;
} known[] = {
#define KNOWN(name, list) \
  { name, sizeof list / sizeof *list, list }
  KNOWN ("default", plain),
  KNOWN ("gpt-2", gpt2),
  KNOWN ("gpt2", gpt2),
  KNOWN ("phi-2", gpt2),
  KNOWN ("mpt", gpt2),
  KNOWN ("olmo", gpt2),
  KNOWN ("jais", gpt2),
  KNOWN ("trillion", gpt2),
  KNOWN ("llama3", llama3),
  KNOWN ("llama-v3", llama3),
  KNOWN ("llama-bpe", llama3),
  KNOWN ("dbrx", llama3),
  KNOWN ("smaug-bpe", llama3),
  KNOWN ("falcon3", llama3),
  KNOWN ("qwen2", qwen2),
  KNOWN ("stablelm2", qwen2),
  KNOWN ("deepseek-r1-qwen", qwen2),
  KNOWN ("starcoder", starcoder),
  KNOWN ("refact", starcoder),
  KNOWN ("command-r", starcoder),
  KNOWN ("smollm", starcoder),
  KNOWN ("codeshell", starcoder),
  KNOWN ("exaone", starcoder),
  KNOWN ("minerva-7b", starcoder),
  KNOWN ("falcon", falcon),
  KNOWN ("gpt-4o", gpt4o),
  KNOWN ("llama4", gpt4o),
  KNOWN ("tekken", tekken),
  KNOWN ("bloom", bloom),
  KNOWN ("gpt3-finnish", bloom),
};
enum { KNOWN_NAMES = sizeof known / sizeof *known };

int sl_pre_tokenizer_named (const char *name, size_t *n,
                            const sl_pre_step **steps, sl_error *e) {
  const char *names[KNOWN_NAMES];
  for (int i = 0; i < KNOWN_NAMES; i++) {
    names[i] = known[i].name;
    if (strcmp (name, known[i].name) != 0) continue;
    *n = known[i].n;
    *steps = known[i].steps;
    return 0;
  }
  return sl_fail_unknown (e, name, KNOWN_NAMES, names,
                          "the pre-tokenizer '%.64s' is not known", name);
}
