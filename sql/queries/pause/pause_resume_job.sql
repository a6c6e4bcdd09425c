-- Resumes a job: function resume_job. $1 text: job. Column: true if it was paused.
SELECT resume_job($1::text)
