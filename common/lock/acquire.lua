-- KEYS: record, lock ...  ARGV: nonce, lease_ms, ident, not_after_ms, mode ('any' or 'all'),
-- marks, not_before_ms (both may be missing)
-- Answers {'ok', token, i, pttl, ...} with the busy keys by index; {'busy', i, pttl, ...};
-- {'late', now_ms} when it runs after not_after_ms, or before not_before_ms: the clock went back, and
-- not_after_ms means nothing; {'epoch', record_epoch}.
-- The same nonce again gets the same token and what it holds, with the time that is left.
-- 'busy' marks the first `marks` busy keys as waited for, so that their release pushes a wake-up.
-- The first free key is set with its end; the others are copies of it, the end included, and COPY makes none where
-- there is a key: cheaper than a SET for each, and no key is ever without an end.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now > tonumber(ARGV[4]) or now < tonumber(ARGV[7] or '0') then return {'late', string.format('%.0f', now)} end

local record = redis.call('HMGET', KEYS[1], 'epoch', 'ident', 'n')
if record[2] ~= ARGV[3] then return {'epoch', record[1] or '0'} end

local n = (record[3] or 0) + 1 -- the next token; it is used up by a grant only
if n >= 1099511627776 then return {'epoch', record[1]} end
local mark, lease, count = ARGV[1] .. '|', ARGV[2], #KEYS - 1
local token = string.format('%.0f', record[1] * 1099511627776 + n)
local value, busy, earlier, not_new = mark .. token, {}, nil, {} -- not_new: by index, busy or of an earlier run

local function each_taken(till, command, ...)
  for i = 1, till do
    if not not_new[i] then redis.call(command, KEYS[i + 1], ...) end
  end
end
local function look_at(i)
  not_new[i] = true
  local held = redis.call('MGET', KEYS[i + 1])[1] -- not GET: a key of another type reads as nothing
  if held and held ~= value and string.sub(held, 1, #mark) == mark then
    earlier = string.sub(held, #mark + 1)
  else
    busy[#busy + 1] = i
  end
end

local pcall, keys, first = redis.pcall, KEYS, nil
for i = 1, count do
  local key, done = keys[i + 1], nil
  if first then
    done = pcall('COPY', first, key)
  elseif redis.call('SET', key, value, 'NX', 'PX', lease) then
    first, done = key, 1
  end
  if not done or done == 0 then
    look_at(i)
  elseif done ~= 1 then -- the user may not, or the server is older than COPY and did not say so
    each_taken(i - 1, 'DEL')
    return done
  end
end

local function answer(head)
  for _, i in ipairs(busy) do
    head[#head + 1] = i
    head[#head + 1] = redis.call('PTTL', KEYS[i + 1])
  end
  return head
end
if #busy > 0 and (ARGV[5] == 'all' or #busy == count) then
  each_taken(count, 'DEL')
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

if earlier and ARGV[5] == 'any' then
  -- A repeat adds nothing to what its first run took: its token may be lower by now than one a free key has seen.
  each_taken(count, 'DEL')
  for i = 1, count do
    if not not_new[i] then busy[#busy + 1] = i end
  end
elseif earlier then
  each_taken(count, 'SET', mark .. earlier, 'PX', lease)
else
  redis.call('HINCRBY', KEYS[1], 'n', 1)
end
return answer({'ok', earlier or token})
