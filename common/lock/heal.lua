-- KEYS: last token, lock ...  ARGV: value ("nonce|token" and the holder's text), ttl_ms, token, not_before_ms, not_after_ms,
-- id of the call
-- Puts the keys back that a node of a quorum has lost, while a majority of the nodes has them: those that nobody holds here.
-- Answers, behind the id, {one character a key: 1 put back, - somebody else's}; {'late'}: it ran outside of its window.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if now < tonumber(ARGV[4]) or now > tonumber(ARGV[5]) then return {ARGV[6], 'late'} end

local answer = {}
for i = 2, #KEYS do
  answer[i - 1] = call('SET', KEYS[i], ARGV[1], 'NX', 'PX', ARGV[2]) and '1' or '-'
end
if tonumber(call('GET', KEYS[1]) or '0') < tonumber(ARGV[3]) then call('SET', KEYS[1], ARGV[3]) end
return {ARGV[6], table.concat(answer)}
