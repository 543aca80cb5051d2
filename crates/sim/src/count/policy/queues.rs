//! Queues of objects in one array: an object is in one of `N` queues or in none.
//!
//! Doubly linked lists by object number, which must be dense. 13 bytes an object.
//!
//! ```text
//! back <-> .. <-> .. <-> front      push at the front, pop from the back
//! ```

/// No object.
const NONE: u32 = u32::MAX;
/// No queue.
const NOWHERE: u8 = u8::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The neighbour nearer to the front, and the one nearer to the back.
    ahead: u32,
    behind: u32,
    weight: u32,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    front: u32,
    back: u32,
    objects: u64,
    weight: u64,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Queues<const N: usize> {
    nodes: Vec<Node>,
    places: Vec<u8>,
    ends: [Ends; N],
}

impl<const N: usize> Queues<N> {
    /// Empty queues, with memory for so many objects.
    pub(super) fn new(objects: usize) -> Self {
        let empty = Ends {
            front: NONE,
            back: NONE,
            objects: 0,
            weight: 0,
        };
        Self {
            nodes: Vec::with_capacity(objects),
            places: Vec::with_capacity(objects),
            ends: [empty; N],
        }
    }

    /// The queue an object is in.
    pub(super) fn place(&self, object: u32) -> Option<usize> {
        let place = self.places.get(object as usize).copied();
        place.filter(|place| *place != NOWHERE).map(usize::from)
    }

    /// The weight of all objects in a queue.
    pub(super) fn weight(&self, queue: usize) -> u64 {
        self.ends[queue].weight
    }

    /// The number of objects in a queue.
    pub(super) fn objects(&self, queue: usize) -> u64 {
        self.ends[queue].objects
    }

    /// The object at the back, which came first.
    pub(super) fn back(&self, queue: usize) -> Option<u32> {
        Some(self.ends[queue].back).filter(|object| *object != NONE)
    }

    /// The next object towards the front.
    pub(super) fn ahead(&self, object: u32) -> Option<u32> {
        Some(self.nodes[object as usize].ahead).filter(|object| *object != NONE)
    }

    /// Puts an object that is in no queue at the front of one.
    pub(super) fn push(&mut self, queue: usize, object: u32, weight: u32) {
        let at = object as usize;
        if at >= self.nodes.len() {
            let none = Node {
                ahead: NONE,
                behind: NONE,
                weight: 0,
            };
            self.nodes.resize(at + 1, none);
            self.places.resize(at + 1, NOWHERE);
        }
        debug_assert_eq!(self.places[at], NOWHERE, "an object is in one queue");
        let ends = &mut self.ends[queue];
        self.nodes[at] = Node {
            ahead: NONE,
            behind: ends.front,
            weight,
        };
        self.places[at] = queue as u8;
        match self.nodes.get_mut(ends.front as usize) {
            Some(before) => before.ahead = object,
            None => ends.back = object,
        }
        ends.front = object;
        ends.objects += 1;
        ends.weight += u64::from(weight);
    }

    /// Takes an object out of its queue; its weight, or nothing where it is in none.
    pub(super) fn remove(&mut self, object: u32) -> Option<u32> {
        let queue = self.place(object)?;
        let Node {
            ahead,
            behind,
            weight,
        } = self.nodes[object as usize];
        self.places[object as usize] = NOWHERE;
        let ends = &mut self.ends[queue];
        match self.nodes.get_mut(ahead as usize) {
            Some(node) => node.behind = behind,
            None => ends.front = behind,
        }
        match self.nodes.get_mut(behind as usize) {
            Some(node) => node.ahead = ahead,
            None => ends.back = ahead,
        }
        ends.objects -= 1;
        ends.weight -= u64::from(weight);
        Some(weight)
    }

    /// Takes the object at the back of a queue.
    pub(super) fn pop(&mut self, queue: usize) -> Option<(u32, u32)> {
        let object = self.back(queue)?;
        self.remove(object).map(|weight| (object, weight))
    }

    /// Moves an object to the front of a queue, from wherever it is.
    pub(super) fn bring_front(&mut self, queue: usize, object: u32) {
        if let Some(weight) = self.remove(object) {
            self.push(queue, object, weight);
        }
    }

    /// Moves the object at the back of one queue to the front of another.
    pub(super) fn shift(&mut self, from: usize, to: usize) -> Option<u32> {
        let (object, weight) = self.pop(from)?;
        self.push(to, object, weight);
        Some(object)
    }
}

impl Queues<1> {
    /// Puts an object in front, where the last ones give it room; one larger than the capacity is not kept.
    pub(super) fn admit(&mut self, object: u32, weight: u32, capacity: u64) {
        if u64::from(weight) > capacity {
            return;
        }
        while self.weight(0) + u64::from(weight) > capacity {
            self.pop(0);
        }
        self.push(0, object, weight);
    }
}
