-- Corrections in the world of the audit, behind its events.
SELECT refund(1, 'charge', 1, 0, 300, 'late', 'r', '2024-04-09 20:00Z'), void_entry(1, 'charge', 2, 0, 'never ordered', 'v', '2024-04-09 20:00Z'),
       return_units(1, 1, 'B', 1, 'broken', 'b', '2024-04-09 20:00Z'), adjust_stock('B', -1, 'broken', 'a', '2024-04-09 20:00Z'), withdraw(1, 'USD',
       900, 'asked for', 'w', '2024-04-09 20:00Z');
