--- files.lua - arrays in files that NumPy and safetensors read.
--
-- Files are written whole or not at all; a file that cannot be read or written gives
-- nil and a message.
local describe = require "sinklab.base.schema".describe

local files = {}

local path = { "path", "string" }
local tensors = { "tensors", "table", doc = "{ name = tensor }" }

files.load_npy = describe("lab.load_npy",
  [[Read a .npy file of NumPy, of either byte order: f2 and f4 as f32; f8, i1 to i8, u1
    to u8 and b1 as f64. Integers of 2^53 and above, complex numbers, text, objects and
    records are refused.]],
  { path }, "tensor, or nil and a message", [[
    lab.arange(3):save_npy "x.npy"
    print(assert(lab.load_npy "x.npy"))]])

files.save_npy = describe("lab.save_npy", "Write a tensor as a .npy file of NumPy.",
  { path, { "tensor", "tensor", doc = "f32 or f64" } },
  "true, or nil and a message", [[assert(lab.save_npy("x.npy", lab.arange(3)))]])

files.load_safetensors = describe("lab.load_safetensors",
  [[Read a safetensors file: F32, F16, BF16 and the 8-bit floats as f32; F64, BOOL and
    integers below 2^53 as f64.]], { path },
  "{ name = tensor }, { key = text } of its metadata; or nil and a message", [[
    assert(lab.save_safetensors("x.safetensors", { x = lab.arange(3) }))
    print(lab.load_safetensors("x.safetensors").x)]])

files.save_safetensors = describe("lab.save_safetensors",
  "Write tensors as a safetensors file; equal tables give equal files.",
  { path, tensors, { "metadata", "table", optional = true, doc = "{ key = text }" } },
  "true, or nil and a message",
  [[assert(lab.save_safetensors("x.safetensors", { x = lab.arange(3) }, { by = "me" }))]])

files.load_npz = describe("lab.load_npz", "Read a .npz file of NumPy, compressed or not.",
  { path },
  [[{ name = tensor }, { name of a member that is not read = why }; or nil and a
    message]], [[
    assert(lab.save_npz("x.npz", { x = lab.arange(3) }))
    print(lab.load_npz("x.npz").x)]])

files.save_npz = describe("lab.save_npz",
  "Write tensors as a .npz file of NumPy, not compressed.",
  { path, tensors },
  "true, or nil and a message",
  [[assert(lab.save_npz("x.npz", { x = lab.arange(3), y = lab.ones({ 2, 2 }) }))]])

files.sha256 = describe("lab.sha256",
  "The SHA-256 of a file.", { path },
  "64 hexadecimal digits, or nil and a message", [[
    lab.arange(3):save_npy "x.npy"
    print(lab.sha256 "x.npy")]])

return files
