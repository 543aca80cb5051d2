//! Pace: how requests of a file come, beside those of other files of its device.
//!
//! Set where they come and where they [hang](super::hung), asked where they are made and sent: those of a file that
//! is not even count no more against the limit of its device, so others wait for none of them. A leaf.

use super::Engine;
use crate::readers::Pace;
use crate::units::FileId;

impl Engine {
    /// How requests of this file come.
    pub(super) fn pace(&self, file: FileId) -> Pace {
        self.readers.file(file).map_or(Pace::Even, |file| file.pace)
    }

    pub(super) fn set_pace(&mut self, file: FileId, pace: Pace) {
        if let Some(file) = self.readers.file_mut(file) {
            file.pace = pace;
        }
    }

    /// Most blocks that a fetch of this file may take: while another of it hangs one block, enough to see
    /// whether it comes.
    pub(super) fn fetch_max(&self, file: FileId) -> u32 {
        let frames = self.memory.frames_usable();
        match self.pace(file) {
            Pace::Hangs => 1,
            pace => self.queues.fetch_max(frames, pace == Pace::Late),
        }
    }
}
