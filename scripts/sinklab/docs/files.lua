--- files.lua - arrays in files that NumPy and safetensors read.
--
-- Files are written whole or not at all; what cannot be read or written returns nil
-- and a message. This file documents core/lua/lua_tensor_files.c; nothing in it runs.

--- Read a .npy file of NumPy: <f4 as f32; <f8, <i4, <i8, |u1 and |b1 as f64.
-- @param path  of the file
-- @return tensor, or nil and a message
-- @example
--   lab.arange(3):save_npy "x.npy"
--   print(assert(lab.load_npy "x.npy"))
function lab.load_npy(path) end

--- Write a tensor as a .npy file of NumPy.
-- @param path    of the file
-- @param tensor  f32 or f64
-- @return true, or nil and a message
-- @example
--   assert(lab.save_npy("x.npy", lab.arange(3)))
function lab.save_npy(path, tensor) end

--- Read a safetensors file.
-- @param path  of the file
-- @return { name = tensor }, { key = text } of its metadata; or nil and a message
-- @example
--   assert(lab.save_safetensors("x.safetensors", { x = lab.arange(3) }))
--   print(lab.load_safetensors("x.safetensors").x)
function lab.load_safetensors(path) end

--- Write tensors as a safetensors file; equal tables give equal files.
-- @param path      of the file
-- @param tensors   { name = tensor }
-- @param metadata  { key = text }, or nil
-- @return true, or nil and a message
-- @example
--   assert(lab.save_safetensors("x.safetensors", { x = lab.arange(3) }, { by = "me" }))
function lab.save_safetensors(path, tensors, metadata) end

--- Read a .npz file of NumPy, compressed or not.
-- @param path  of the file
-- @return { name = tensor }, or nil and a message
-- @example
--   assert(lab.save_npz("x.npz", { x = lab.arange(3) }))
--   print(lab.load_npz("x.npz").x)
function lab.load_npz(path) end

--- Write tensors as a .npz file of NumPy, not compressed.
-- @param path     of the file
-- @param tensors  { name = tensor }
-- @return true, or nil and a message
-- @example
--   assert(lab.save_npz("x.npz", { x = lab.arange(3), y = lab.ones({ 2, 2 }) }))
function lab.save_npz(path, tensors) end

--- The SHA-256 of a file.
-- @param path  of the file
-- @return 64 hexadecimal digits, or nil and a message
-- @example
--   lab.arange(3):save_npy "x.npy"
--   print(lab.sha256 "x.npy")
function lab.sha256(path) end
