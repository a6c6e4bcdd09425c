-- KEYS: last token  ARGV: cursor, pattern
-- One step of a scan: {next cursor, key, value, time left, ...} of the keys that match; the value of a key that is no
-- string is a number.
local call = redis.call
local step = call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 200)
local answer = {step[1]}
for _, key in ipairs(step[2]) do
  local value = redis.pcall('GET', key)
  if value then
    answer[#answer + 1] = key
    answer[#answer + 1] = type(value) == 'table' and 0 or value
    answer[#answer + 1] = call('PTTL', key)
  end
end
return answer
