-- KEYS: node record, amnesia note  ARGV: ident, wait_ms, floor ('': only look)
-- A node without a record of its own may vote again, from floor, once wait_ms have passed since that was first seen.
-- Answers {1 if it votes, its counter, ms that it has to wait}.
local record = redis.call('HMGET', KEYS[1], 'ident', 'c')
local c = record[2] or '0'
if record[1] == ARGV[1] then return {1, c, 0} end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local note = redis.call('HMGET', KEYS[2], 'ident', 'since')
local since = tonumber(note[2])
if note[1] ~= ARGV[1] or not since or since > now then
  since = now
  redis.call('HSET', KEYS[2], 'ident', ARGV[1], 'since', string.format('%.0f', since))
end
local left = math.max(0, tonumber(ARGV[2]) - (now - since))
if left > 0 or ARGV[3] == '' then return {0, c, left} end
if tonumber(ARGV[3]) > tonumber(c) then c = ARGV[3] end
redis.call('HSET', KEYS[1], 'ident', ARGV[1], 'c', c)
redis.call('DEL', KEYS[2])
return {1, c, 0}
