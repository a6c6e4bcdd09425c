-- Every deposit is numbered among those of the user whose wallet it fills.
-- Under another user's number the same deposit could be made again.
SELECT format('deposit %s/%s', source, leg) AS what, format('fills the wallet of user %s', user_id) AS detail
  FROM open_transfers
 WHERE kind = 'deposit' AND source <> user_id
 ORDER BY source, leg;
