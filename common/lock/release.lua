-- KEYS: lock ..., or lock ..., list of wake-ups ...  ARGV: mark ("nonce|"), how: '' or 'whole', number of locks, id of the call
-- Deletes the keys whose value begins with the mark, or with 'whole' is the mark (empty: a key of another type, too), and puts a
-- wake-up into the list of each that is waited for. Answers, behind the id, one character a key: 1 deleted, 0 gone, - somebody
-- else's; then, without lists, the indices of the deleted keys that are waited for.
local call, find, n = redis.call, string.find, tonumber(ARGV[3])
local held = call('MGET', unpack(KEYS, 1, n))
local mark, whole, first = ARGV[1], ARGV[2] == 'whole', held[1]

if first and not whole and find(first, mark, 1, true) == 1 and string.sub(first, -2) ~= '|w' then
  local i = 2
  while i <= n and held[i] == first do i = i + 1 end
  if i > n then -- as nearly always: one value, and one comparison tells of all
    call('DEL', unpack(KEYS, 1, n))
    return {ARGV[4], string.rep('1', n)}
  end
end

local mine, answer, head = {}, {}, {ARGV[4], ''}

local function is_ours(value)
  if whole then return value == mark end
  return find(value, mark, 1, true) == 1
end
local function is_waited_for(value)
  return string.sub(value, -2) == '|w'
end

-- Changes nothing, but is a write: a demoted primary must say READONLY, not what it last knew. The second is for servers before 7.0.
local function touch(key)
  if redis.REDIS_VERSION_NUM then return call('PEXPIRE', key, 1, 'GT') and nil end
  local refusal = redis.pcall('HDEL', key, '!')
  return type(refusal) == 'table' and not find(refusal.err, 'WRONGTYPE', 1, true) and refusal or nil
end

local function wake(i)
  local list = KEYS[n + i]
  if not list then
    head[#head + 1] = i
  elseif call('EXISTS', list) == 0 then
    redis.pcall('LPUSH', list, 1) -- a server that is full gives no hint
    call('PEXPIRE', list, 1000)
  end
end

for i = 1, #held do
  local value = held[i] or (whole and call('EXISTS', KEYS[i]) == 1 and '') -- no string
  if value and is_ours(value) then
    mine[#mine + 1] = KEYS[i]
    answer[i] = '1'
    if is_waited_for(value) then wake(i) end
  else
    answer[i] = value and '-' or '0'
  end
end
if #mine > 0 then
  call('DEL', unpack(mine))
else
  local refusal = touch(KEYS[1])
  if refusal then return refusal end
end
head[2] = table.concat(answer)
return head
