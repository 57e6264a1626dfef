--- divisor.lua - how a batch is cut into equal parts.

--- The largest divisor of n that is at most `limit` (at least 1).
return function(n, limit)
  for k = math.min(n, math.max(1, limit)), 1, -1 do
    if n % k == 0 then return k end
  end
end
