-- KEYS: lock ...  ARGV: mark ("nonce|")
-- Deletes the keys whose value begins with the mark. Answers one character a key: 1 deleted, 0 gone, - somebody else's.
local held = redis.call('MGET', unpack(KEYS))
local mark, mine, answer = ARGV[1], {}, {}
for i = 1, #held do
  if held[i] and string.sub(held[i], 1, #mark) == mark then
    mine[#mine + 1] = KEYS[i]
    answer[i] = '1'
  else
    answer[i] = held[i] and '-' or '0'
  end
end
if #mine > 0 then redis.call('DEL', unpack(mine)) end
return table.concat(answer)
