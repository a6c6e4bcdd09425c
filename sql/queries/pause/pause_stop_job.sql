-- Pauses a job: function pause_job. $1 text: job. $2 text: reason. Column: true if it was not paused before.
SELECT pause_job($1::text, $2::text)
