//! `ultramarine.collective/1`: see [`crate::collective`].

use crate::collective::{Communicator, Helpers, enqueue};
use crate::launch::Device;
use crate::streams::Stream;
use ultramarine_abi::helper::{CollectiveRef, Collectives, Result, collective_table};
use ultramarine_abi::interface::collective::CollectiveInterface;

/// The interface.
pub static TABLE: CollectiveInterface = collective_table::<Device>();

/// A group of devices, one per process, as the host holds it: a [`Communicator`], and the kernels
/// that its collectives need.
pub struct Group {
    communicator: Communicator,
    helpers: Helpers,
}

impl Group {
    fn of(communicator: Communicator) -> Self {
        Self { communicator, helpers: Helpers::default() }
    }
}

impl Collectives for Device {
    type Group = Group;

    fn check_library(&self) -> Result<()> {
        Communicator::check_library()
    }

    fn make_id(&self) -> Result<Vec<u8>> {
        Communicator::make_id(&self.context)
    }

    fn open(&self, id: &[u8], rank: u32, n_ranks: u32) -> Result<Group> {
        Communicator::open(&self.context, id, rank, n_ranks).map(Group::of)
    }

    fn split(&self, group: &Group, color: u32, key: i32) -> Result<Group> {
        group.communicator.split(color, key).map(Group::of)
    }

    fn is_ready(&self, group: &Group) -> Result<bool> {
        group.communicator.is_ready()
    }

    fn place(&self, group: &Group) -> Result<(u32, u32)> {
        group.communicator.place()
    }

    fn run(
        &self,
        group: &Group,
        stream: Option<&Stream>,
        commands: &[CollectiveRef<'_, Self>],
    ) -> Result<()> {
        let stream = self.stream_or_default(stream);
        enqueue(self, stream, &group.helpers, &group.communicator, commands)
    }

    fn abort(&self, group: &Group) {
        group.communicator.abort();
    }
}
