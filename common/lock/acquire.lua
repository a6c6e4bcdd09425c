-- KEYS: record, lock ...  ARGV: nonce, lease_ms, ident, not_after_ms, mode ('any' or 'all'),
-- marks, not_before_ms (both may be missing)
-- Answers {'ok', token, i, pttl, ...} with the busy keys by index; {'busy', i, pttl, ...};
-- {'late', now_ms} when it runs after not_after_ms, or before not_before_ms: the clock went back, and
-- not_after_ms means nothing; {'epoch', record_epoch}.
-- The same nonce again gets the same token and what it holds, with the time that is left.
-- 'busy' marks the first `marks` busy keys as waited for, so that their release pushes a wake-up.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[4]) or now < tonumber(ARGV[7] or '0') then return {'late', string.format('%.0f', now)} end

local record = redis.call('HMGET', KEYS[1], 'epoch', 'ident')
if record[2] ~= ARGV[3] then return {'epoch', record[1] or '0'} end

local mark = ARGV[1] .. '|'
local held = redis.call('MGET', unpack(KEYS, 2))
local free, busy, token = {}, {}, nil
for i = 1, #held do
  local value = held[i]
  if not value then
    free[#free + 1] = i
  elseif string.sub(value, 1, #mark) == mark then
    token = string.sub(value, #mark + 1)
  else
    busy[#busy + 1] = i
  end
end

-- A repeat adds nothing to what its first run took: its token may be lower by now than one a free key has seen.
if token and ARGV[5] == 'any' then
  for _, i in ipairs(free) do busy[#busy + 1] = i end
  free = {}
end

local function answer(head)
  for _, i in ipairs(busy) do
    head[#head + 1] = i
    head[#head + 1] = redis.call('PTTL', KEYS[i + 1])
  end
  return head
end
local function refuse()
  redis.call('HDEL', KEYS[1], '') -- changes nothing; a demoted primary must say READONLY, not what it last knew
  local marks = math.min(tonumber(ARGV[6] or '0'), #busy)
  if marks > 0 then
    local prefix = string.sub(KEYS[1], 1, -7) -- the record is <prefix>!fence
    redis.call('SET', prefix .. '!waiters', 1, 'PX', 1000)
    for i = 1, marks do
      redis.call('SET', prefix .. '!wait:' .. string.sub(KEYS[busy[i] + 1], #prefix + 1), 1, 'PX', 1000)
    end
  end
  return answer({'busy'})
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == #held) then return refuse() end

if not token then
  local n = redis.call('HINCRBY', KEYS[1], 'n', 1)
  if n >= 1099511627776 then return {'epoch', record[1]} end
  token = string.format('%.0f', record[1] * 1099511627776 + n)
end
local value, taken = mark .. token, {}
for _, i in ipairs(free) do
  -- NX although MGET found nothing: a key of another type reads as nothing and is not ours
  if redis.call('SET', KEYS[i + 1], value, 'NX', 'PX', ARGV[2]) then
    taken[#taken + 1] = KEYS[i + 1]
  else
    busy[#busy + 1] = i
  end
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == #held) then
  if #taken > 0 then redis.call('DEL', unpack(taken)) end
  return refuse()
end
return answer({'ok', token})
