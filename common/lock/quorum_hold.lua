-- KEYS: node record, lock ...  ARGV: ident, ttl_ms (0: leave it), token (0: none), mark ("nonce|"), then what this node granted for each key
-- Where the value is still exactly mark and grant: lengthens the lease (never shortens, never makes a key) and lifts the
-- node's counter to token. Answers one character a key: 1 ours, 0 gone, - somebody else's; an empty text: the node has
-- lost its memory and does not vote.
local record = redis.call('HMGET', KEYS[1], 'ident', 'c')
if record[1] ~= ARGV[1] then return '' end

local held = redis.call('MGET', unpack(KEYS, 2))
local ttl, token, mark, ours, answer = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], false, {}
for i = 1, #held do
  if held[i] == mark .. ARGV[i + 4] then
    if redis.call('PTTL', KEYS[i + 1]) < ttl then redis.call('PEXPIRE', KEYS[i + 1], ttl) end
    answer[i] = '1'
    ours = true
  else
    answer[i] = held[i] and '-' or '0'
  end
end
if ours and token > tonumber(record[2] or '0') then redis.call('HSET', KEYS[1], 'c', ARGV[3]) end
return table.concat(answer)
