-- KEYS: last token  ARGV: cursor, pattern, id of the call
-- One step of a scan: {id, next cursor, key, value, time left, ...} of the keys that match; the value of a key that is no
-- string is a number. Writes nothing, so that it runs where the server refuses writes, and asks for its role itself.
local call = redis.call
if string.find(call('INFO', 'replication'), 'role:slave', 1, true) then
  return redis.error_reply('READONLY the server is a replica now, and its locks are out of date')
end
local step = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 200)
local answer = {ARGV[3], step[1]}
for _, key in ipairs(step[2]) do
  local value = redis.pcall('GET', key)
  if value then
    answer[#answer + 1] = key
    answer[#answer + 1] = type(value) == 'table' and 0 or value
    answer[#answer + 1] = call('PTTL', key)
  end
end
return answer
