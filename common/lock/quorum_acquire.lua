-- KEYS: node record, amnesia note, lock ...  ARGV: nonce, lease_ms, ident, not_after_ms, mode ('any' or 'all'), client's clock_us,
-- least token, not_before_ms
-- Answers {'ok', token, i, x, ...}: every key is granted with token, except key i: x is the time its holder has left
-- (integer), or the token that this nonce has there already (text); {'busy', i, pttl, ...}; {'late'} when it runs after
-- not_after_ms, or before not_before_ms: the node's clock went back, and not_after_ms means nothing;
-- {'amnesia', ms since that was first seen}: the node has no record of its own and does not vote.
local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)
if now > tonumber(ARGV[4]) or now < tonumber(ARGV[8]) then return {'late'} end

local record = redis.call('HMGET', KEYS[1], 'ident', 'c')
if record[1] ~= ARGV[3] then
  local note = redis.call('HMGET', KEYS[2], 'ident', 'since')
  local since = tonumber(note[2])
  if note[1] ~= ARGV[3] or not since or since > now then
    since = now
    redis.call('HSET', KEYS[2], 'ident', ARGV[3], 'since', string.format('%.0f', since))
  end
  return {'amnesia', now - since}
end

local mark = ARGV[1] .. '|'
local held = redis.call('MGET', unpack(KEYS, 3))
local free, busy, mine = {}, {}, {}
for i = 1, #held do
  local value = held[i]
  if not value then
    free[#free + 1] = i
  elseif string.sub(value, 1, #mark) == mark then
    mine[#mine + 1] = i
  else
    busy[#busy + 1] = i
  end
end

local function answer(head)
  for _, i in ipairs(busy) do
    head[#head + 1] = i
    head[#head + 1] = redis.call('PTTL', KEYS[i + 2])
  end
  return head
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == #held) then return answer({'busy'}) end

-- The counter grows by every grant, and follows the clock, so that the nodes nearly always agree.
local c = tonumber(record[2] or '0')
if #free > 0 then
  c = math.max(c + 1, math.min(tonumber(ARGV[6]), now_us + 1000000), tonumber(ARGV[7]))
  if c >= 9007199254740991 then return redis.error_reply('ERR the token space is used up') end
  redis.call('HSET', KEYS[1], 'c', string.format('%.0f', c))
end
local token = string.format('%.0f', c)
local taken = {}
for _, i in ipairs(free) do
  -- NX although MGET found nothing: a key of another type reads as nothing and is not ours
  if redis.call('SET', KEYS[i + 2], mark .. token, 'NX', 'PX', ARGV[2]) then
    taken[#taken + 1] = KEYS[i + 2]
  else
    busy[#busy + 1] = i
  end
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == #held) then
  if #taken > 0 then redis.call('DEL', unpack(taken)) end
  return answer({'busy'})
end
local head = {'ok', token}
for _, i in ipairs(mine) do
  head[#head + 1] = i
  head[#head + 1] = string.sub(held[i], #mark + 1)
end
return answer(head)
