//! Consecutive commands that run as one launch. For example, a training step updates a hundred small tensors by
//! the same program.
//!
//! Commands wait for similar commands that are independent of each other's results. A command that differs, or that uses what
//! waiting commands write, makes these run first; so does the end of a submission. A command whose result the next program
//! overwrites ([`Plan::follows`]) waits for that program: random bits are converted to numbers in the launch that makes them.

use super::{Device, Job, Kind, Plan};
use crate::streams::Stream;
use ultramarine_abi::helper::{CommandRef, Result};

/// Commands of one [`Kind`] that wait to run as one launch. The module's documentation says when
/// they run.
#[derive(Default)]
pub struct Together<'a> {
    /// The plan of the first command, and its kind if others may join it. The plans of all commands
    /// have the same name.
    first: Option<(&'a Plan, Option<Kind>)>,
    jobs: Vec<Job<'a>>,
}

/// Returns true if a command can join `jobs`, whose first command has the given plan and kind.
pub fn joins(
    jobs: &[Job<'_>],
    (first, kind): (&Plan, Kind),
    (plan, job): (&Plan, &Job<'_>),
) -> bool {
    jobs.len() < kind.most
        && first.name() == plan.name()
        && plan.kind(job) == Some(kind)
        && jobs.iter().all(|other| other.scalars == job.scalars && other.is_apart(job))
}

/// The kernel of several commands, their concatenated arguments, and the largest number of items of any of them; `None`
/// if their kernels differ. `each` returns these values for one command.
pub fn as_one<V: PartialEq>(
    jobs: &[Job<'_>],
    each: impl Fn(&Job<'_>) -> Result<(V, Vec<u64>, u64)>,
) -> Result<Option<(V, Vec<u64>, u64)>> {
    let Some((first, others)) = jobs.split_first() else { return Ok(None) };
    let (kernel, mut words, mut most) = each(first)?;
    for job in others {
        let (other, more, items) = each(job)?;
        if other != kernel {
            return Ok(None);
        }
        words.extend(more);
        most = most.max(items);
    }
    Ok(Some((kernel, words, most)))
}

impl<'a> Together<'a> {
    /// Enqueues a command, or keeps it waiting. The context is current.
    pub fn run(
        &mut self,
        device: &'a Device,
        stream: &'a Stream,
        plan: &'a Plan,
        command: &CommandRef<'a, Device>,
    ) -> Result<()> {
        let decoded = Job::of(device, Some(stream), command);
        let joins = match (self.first, &decoded) {
            (Some((first, Some(kind))), Ok(job)) => joins(&self.jobs, (first, kind), (plan, job)),
            (Some((first, None)), Ok(job)) if plan.follows(job, (first, &self.jobs[0])) => {
                match plan.run_behind(device, &self.jobs[0], job) {
                    Ok(false) => false,
                    Ok(true) => {
                        (self.first, self.jobs) = Default::default();
                        stream.log().push(plan.name());
                        return Ok(());
                    }
                    // The waiting commands are enqueued even if decoding this one failed.
                    Err(failure) => return self.flush(device).and(Err(failure)),
                }
            }
            _ => false,
        };
        if !joins {
            // The waiting commands are enqueued even if this one fails.
            self.flush(device)?;
        }
        let job = decoded?;
        stream.log().push(plan.name());
        if self.first.is_none() {
            let kind = plan.kind(&job);
            if kind.is_none() && !plan.leads(&job) {
                return plan.run_job(device, &job);
            }
            self.first = Some((plan, kind));
        }
        self.jobs.push(job);
        Ok(())
    }

    /// Enqueues the waiting commands. The context is current.
    pub fn flush(&mut self, device: &Device) -> Result<()> {
        let Some((plan, _)) = self.first.take() else { return Ok(()) };
        let jobs = std::mem::take(&mut self.jobs);
        if jobs.len() > 1 && plan.run_together(device, &jobs)? {
            return Ok(());
        }
        jobs.iter().try_for_each(|job| plan.run_job(device, job))
    }
}
