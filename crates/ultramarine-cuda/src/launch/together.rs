//! Consecutive commands that run as one launch: a step of training updates a hundred small tensors by one program.
//!
//! Commands wait for others like them, which have nothing to do with each other's results. One that differs, or uses what
//! they write, has them run first; so does the end of a submission. A command that makes what a program behind it writes over
//! ([`Plan::follows`]) waits for that: random bits become numbers where they are made.

use super::{Device, Job, Kind, Plan};
use crate::streams::Stream;
use ultramarine_abi::helper::{CommandRef, Result};

/// Commands of one [`Kind`] that wait to run as one launch. See the module for when they run.
#[derive(Default)]
pub struct Together<'a> {
    /// The plan of the first, and its kind, if others may join it; their plans are of the same name.
    first: Option<(&'a Plan, Option<Kind>)>,
    jobs: Vec<Job<'a>>,
}

/// Returns true if a command joins others, of which the first has that plan and is of that kind.
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

/// The kernel of several commands, their arguments one behind another, and the most items that one of them has; `None` if
/// their kernels differ. `each` tells these of one command.
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
    /// Enqueues a command, or lets it wait. The context is current.
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
                    // The command before it is enqueued all the same.
                    Err(failure) => return self.flush(device).and(Err(failure)),
                }
            }
            _ => false,
        };
        if !joins {
            // Commands before one that fails are enqueued.
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

    /// Enqueues those that wait. The context is current.
    pub fn flush(&mut self, device: &Device) -> Result<()> {
        let Some((plan, _)) = self.first.take() else { return Ok(()) };
        let jobs = std::mem::take(&mut self.jobs);
        if jobs.len() > 1 && plan.run_together(device, &jobs)? {
            return Ok(());
        }
        jobs.iter().try_for_each(|job| plan.run_job(device, job))
    }
}
