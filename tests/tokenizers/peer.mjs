#!/usr/bin/env node
// peer.mjs - ids and texts by Hugging Face's library, for test_lm_tokenizer_peer.lua.
//
//   peer.mjs PACKAGES CASES START >>answers
//
// PACKAGES is a folder with the npm package @anush008/tokenizers, CASES a file with
// { "texts": [text], "tokenizers": [tokenizer.json as text] }. Standard output gets a
// line for each tokenizer from number START on, counted from 0: { "error": sentence }
// or { "ids": ["1 2"], "decoded": [text], "special": [text] }: of each text its ids, and
// these decoded without and with special tokens.
import { createRequire } from "node:module";
import { readFileSync, writeSync } from "node:fs";
import { resolve } from "node:path";

const require = createRequire(resolve(process.argv[2], "package.json"));
const { Tokenizer } = require("@anush008/tokenizers");
const { texts, tokenizers } = JSON.parse(readFileSync(process.argv[3], "utf8"));
for (const json of tokenizers.slice(Number(process.argv[4]))) {
  let answer;
  try {
    const tokenizer = Tokenizer.fromString(json);
    const encodings = await tokenizer.encodeBatch(texts, { addSpecialTokens: false });
    const ids = encodings.map((encoding) => encoding.getIds());
    answer = {
      ids: ids.map((list) => list.join(" ")),
      decoded: await tokenizer.decodeBatch(ids, true),
      special: await tokenizer.decodeBatch(ids, false),
    };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  writeSync(1, JSON.stringify(answer) + "\n");
}
