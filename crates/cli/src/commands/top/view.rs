//! The view that keys of `top` choose: the order of the files, the first one shown, the page of help.

use std::path::Path;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The key by which files are sorted: the largest first, names in their order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Order {
    #[default]
    Rate,
    Ahead,
    Size,
    Name,
}

impl Order {
    /// As the last line of the screen has it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Ahead => "bytes ahead",
            Self::Size => "size",
            Self::Name => "name",
        }
    }

    fn next(self) -> Self {
        match self {
            Self::Rate => Self::Ahead,
            Self::Ahead => Self::Size,
            Self::Size => Self::Name,
            Self::Name => Self::Rate,
        }
    }
}

/// The part of a report that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) order: Order,
    /// Files before the first one that is shown.
    pub(super) skipped: usize,
    pub(super) is_help: bool,
    /// That the daemon gives no report, and for how long.
    pub(super) silence: Option<String>,
}

/// The effect of a key beyond a change of the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Leave,
    /// The next mount.
    Next,
    /// The same report in another view.
    Redraw,
    Nothing,
}

/// Files that a page key goes on by.
const PAGE: usize = 10;

/// The keys, and the words of the screen.
pub(super) const HELP: &str = "\
q, Esc          end
Tab             the next mount or watch
s               sort files by rate, bytes ahead, size, name
Down, Up        scroll the files; PageDown, PageUp by ten; Home to the first
?               this page, and back

hits            blocks that were in memory when they were asked for
late            blocks that were on their way then (late hits)
misses          blocks that were neither in memory nor requested
readers wait    readers that wait for data at a time, on average
wasted          bytes fetched ahead and given up before anyone read them
closed unread   bytes of files opened ahead that were unread when they closed
thrashed        blocks given up and soon fetched again: memory is short
WINDOW, AHEAD   the bytes fetched ahead at a time; those ahead of the reader now
WAIT            requests of the kernel that wait for this file
SWITCH, RATE    of the device: time to go elsewhere (seek), transfer rate
SERVERS         requests that it serves at a time
DEPTH           SWITCH x RATE: a window is that long or longer
FROM            where these costs come from; ? marks one not yet measured";

impl View {
    /// The effect of a key, where so many files are open.
    pub(super) fn press(&mut self, key: KeyEvent, files: usize) -> Wish {
        let is_interrupt = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if is_interrupt => return Wish::Leave,
            KeyCode::Char('q') => return Wish::Leave,
            KeyCode::Esc if !self.is_help => return Wish::Leave,
            KeyCode::Tab => {
                self.skipped = 0;
                return Wish::Next;
            }
            KeyCode::Esc | KeyCode::Char('?' | 'h') => self.is_help = !self.is_help,
            KeyCode::Char('s') => (self.order, self.skipped) = (self.order.next(), 0),
            KeyCode::Down => self.skipped += 1,
            KeyCode::Up => self.skipped = self.skipped.saturating_sub(1),
            KeyCode::PageDown => self.skipped += PAGE,
            KeyCode::PageUp => self.skipped = self.skipped.saturating_sub(PAGE),
            KeyCode::Home => self.skipped = 0,
            _ => return Wish::Nothing,
        }
        self.skipped = self.skipped.min(files.saturating_sub(1));
        Wish::Redraw
    }
}

/// The name of a device for people, `sda1`, in place of its number, `8:1`; the number where the system has no name for it.
pub(super) fn device(number: &str, system: &Path) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_device = number
        .split_once(':')
        .is_some_and(|(major, minor)| is_number(major) && is_number(minor));
    let link = is_device.then(|| std::fs::read_link(system.join("dev/block").join(number)).ok());
    let name = link.flatten();
    let name = name.as_deref().and_then(Path::file_name);
    name.and_then(|name| name.to_str())
        .unwrap_or(number)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(view: &mut View, codes: &[KeyCode]) -> Wish {
        let press = |code: &KeyCode| view.press(KeyEvent::from(*code), 25);
        codes.iter().map(press).last().unwrap()
    }

    #[test]
    fn keys_sort_scroll_and_explain() {
        let mut view = View::default();
        assert_eq!(pressed(&mut view, &[KeyCode::PageDown; 4]), Wish::Redraw);
        assert_eq!(view.skipped, 24);
        pressed(&mut view, &[KeyCode::Up, KeyCode::PageUp]);
        assert_eq!(view.skipped, 13);
        pressed(&mut view, &[KeyCode::Char('s')]);
        assert_eq!((view.order, view.skipped), (Order::Ahead, 0));
        pressed(&mut view, &[KeyCode::Char('s'); 3]);
        assert_eq!(view.order, Order::Rate);
        pressed(&mut view, &[KeyCode::Char('?')]);
        assert!(view.is_help);
        assert_eq!(pressed(&mut view, &[KeyCode::Esc]), Wish::Redraw);
        assert_eq!(pressed(&mut view, &[KeyCode::Esc]), Wish::Leave);
        assert_eq!(pressed(&mut view, &[KeyCode::Char('x')]), Wish::Nothing);
        assert_eq!(pressed(&mut view, &[KeyCode::Tab]), Wish::Next);
    }

    #[test]
    fn the_page_of_help_fits_a_small_terminal() {
        assert!(HELP.lines().count() <= 23);
        assert!(HELP.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn devices_have_the_names_that_the_system_has() {
        let system = tempfile::tempdir().unwrap();
        let block = system.path().join("dev/block");
        std::fs::create_dir_all(&block).unwrap();
        std::os::unix::fs::symlink("../../devices/pci/block/sda/sda1", block.join("8:1")).unwrap();
        let named = |number| device(number, system.path());
        assert_eq!(named("8:1"), "sda1");
        assert_eq!(named("0:42"), "0:42");
        assert_eq!(named("emulated"), "emulated");
        assert_eq!(named("../8:1"), "../8:1");
    }
}
