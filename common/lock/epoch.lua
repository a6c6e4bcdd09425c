-- KEYS: record  ARGV: epoch (0: only look), ident
-- Replaces the record if the epoch is higher. Answers {1 if the record is now of this ident, its epoch}.
local record = redis.call('HMGET', KEYS[1], 'epoch', 'ident')
local epoch = tonumber(record[1] or '0')
if tonumber(ARGV[1]) > epoch then
  redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'ident', ARGV[2], 'n', 0)
  return {1, tonumber(ARGV[1])}
end
return {record[2] == ARGV[2] and 1 or 0, epoch}
