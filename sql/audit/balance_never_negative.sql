-- No wallet holds less than nothing.
SELECT format('user %s', user_id) AS what, format('balance %s', balance_minor) AS detail
  FROM users
 WHERE balance_minor < 0
 ORDER BY user_id;
