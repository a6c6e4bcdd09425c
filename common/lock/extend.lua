-- KEYS: lock ...  ARGV: ttl_ms (0: only look), then one mark ("nonce|") a key
-- Lengthens keys that carry their mark, never shortens, never makes one. Answers {one character a key:
-- 1 ours, 0 gone, - somebody else's; the shortest time left among ours}.
local held = redis.call('MGET', unpack(KEYS))
local ttl, least, answer = tonumber(ARGV[1]), -1, {}
for i = 1, #held do
  local mark = ARGV[i + 1]
  if held[i] and string.sub(held[i], 1, #mark) == mark then
    local left = redis.call('PTTL', KEYS[i])
    if ttl > 0 and left < ttl then
      redis.call('PEXPIRE', KEYS[i], ttl)
      left = ttl
    end
    if least < 0 or left < least then least = left end
    answer[i] = '1'
  else
    answer[i] = held[i] and '-' or '0'
  end
end
return {table.concat(answer), least}
