-- 005: rows whose worker died while it worked them, and an incident for what a person gives back.
CREATE TABLE ledgerlock.quarantine (
  job        text COLLATE "C" NOT NULL,
  item       bigint NOT NULL,
  crashes    integer NOT NULL CHECK (crashes >= 0),
  worker     text NOT NULL,
  crashed_at timestamptz NOT NULL,
  PRIMARY KEY (job, item)
);
COMMENT ON TABLE ledgerlock.quarantine IS
  'Suspects: rows whose worker died while it worked them. Each is worked alone until that ends well, which clears it, or until it has taken too many workers with it, which parks it.';
COMMENT ON COLUMN ledgerlock.quarantine.item IS 'billing: subscription_id; orders: order_id.';
COMMENT ON COLUMN ledgerlock.quarantine.crashes IS
  'Deaths that this row is charged with: one for any number of deaths in company, and one for each death alone. 0: a person gave it back.';
COMMENT ON COLUMN ledgerlock.quarantine.worker IS 'The worker that died last; each death counts once.';
COMMENT ON COLUMN ledgerlock.subscriptions.state IS
  'active; past_due: declined, retried on schedule; unpaid: schedule used up; cancelled; parked: an invariant broke or its workers died, a person must look.';
GRANT SELECT ON ledgerlock.quarantine TO ledgerlock_worker;

ALTER TABLE ledgerlock.lock_incidents DROP CONSTRAINT lock_incidents_kind_check;
ALTER TABLE ledgerlock.lock_incidents ADD CONSTRAINT lock_incidents_kind_check CHECK (kind IN
  ('lost', 'fenced', 'uncertain', 'epoch_bump', 'commit_unknown', 'forced_unlock', 'parked', 'resumed'));
