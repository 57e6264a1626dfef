#!/usr/bin/env node
// llama.mjs - llama.cpp's prefill, for prefill.lua, where no llama-bench is at hand.
//
//   llama.mjs -m FILE -p TOKENS -t THREADS -r REPEATS [-fa 0|1]
//
// takes those options of llama-bench (others are read and ignored) and prints its
// "samples_ts" as JSON: tokens a second of each repeat, after one that does not
// count. llama.cpp comes as a library, built for every processor, in the npm
// package node-llama-cpp, looked for below the current folder: `npm install
// node-llama-cpp` once.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const options = { r: "3", fa: "1" };
for (let i = 2; i + 1 < process.argv.length; i += 2)
  options[process.argv[i].replace(/^-+/, "")] = process.argv[i + 1];
for (const name of ["m", "p", "t"])
  if (!(name in options)) {
    console.error(`llama.mjs: -${name} is missing`);
    process.exit(1);
  }
const tokens = Number(options.p), threads = Number(options.t);

const library = resolve("node_modules/node-llama-cpp/dist/index.js");
const { getLlama } = await import(pathToFileURL(library).href).catch(() => {
  console.error(`llama.mjs: no ${library}: npm install node-llama-cpp`);
  process.exit(1);
});
const llama = await getLlama({
  gpu: false, build: "never", maxThreads: threads, progressLogs: false,
  logLevel: "error",
});
const model = await llama.loadModel({ modelPath: options.m });
const context = await model.createContext({
  contextSize: tokens, batchSize: tokens, threads,
  flashAttention: options.fa === "1",
});
const sequence = context.getSequence();
const ids = Array.from({ length: tokens }, (_, i) => 1 + (i * 7919) % 8000);

const rates = [];
for (let repeat = 0; repeat <= Number(options.r); repeat++) {
  await sequence.clearHistory();
  const began = process.hrtime.bigint();
  await sequence.evaluateWithoutGeneratingNewTokens(ids);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  if (repeat > 0) rates.push(tokens / seconds);
}
console.log(JSON.stringify([{
  build_commit: llama.llamaCppRelease.release, n_threads: threads,
  n_prompt: tokens, samples_ts: rates,
}]));
process.exit(0);
