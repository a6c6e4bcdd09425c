-- KEYS: last token, lock ...  ARGV: value ("nonce|token" and the holder's text) that this server gave, token of the whole lock, not_before_ms, not_after_ms,
-- id of the call
-- The write-back of a quorum: where a key still carries exactly that value it gets the lock's token, and the last token is
-- lifted to it. Answers, behind the id, {one character a key: 1 done, 0 gone, - other}; {'late'}: it ran outside of its window.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + time[2] / 1000
if now < tonumber(ARGV[3]) or now > tonumber(ARGV[4]) then return {ARGV[5], 'late'} end

local held, answer, done = call('MGET', unpack(KEYS, 2)), {}, false
local value = string.gsub(ARGV[1], '|%d+', '|' .. ARGV[2], 1)
for i = 1, #held do
  if held[i] == ARGV[1] then
    call('SET', KEYS[i + 1], value, 'XX', 'KEEPTTL')
    answer[i], done = '1', true
  else
    answer[i] = held[i] and '-' or '0'
  end
end
if done and tonumber(call('GET', KEYS[1]) or '0') < tonumber(ARGV[2]) then call('SET', KEYS[1], ARGV[2]) end
return {ARGV[5], table.concat(answer)}
