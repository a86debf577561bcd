use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use fibula_core::{Addr, AnyEngine, Family, Hop, Lookup, Memory, TableRef};

use crate::error::DeviceError;
use crate::launch::Source;
use crate::schemes::{self, Plan};

/// The start of each part is a multiple of this, in bytes.
const LINE: usize = 64;
/// The most parts, and the most numbers, of a scheme.
pub(crate) const PARTS: usize = 8;
/// Free bytes behind each part at least. Kernels read further than they need: up to seven bytes where they compose a
/// word of aligned ones, and up to 16 behind the keys of a record of wideleaf.
const PADDING: usize = 16;
/// One byte in so many is left free behind each part but the last, so that a table that grows keeps its layout.
const SLACK: usize = 16;
/// Images are compared in blocks of this many bytes.
const BLOCK: usize = 4096;

/// What a kernel is given besides the table: where each part begins, in lines, and numbers of the scheme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) at: [u32; PARTS],
    pub(crate) words: [u32; PARTS],
}

/// One width of a scheme's codes: its kernel, and the walk that says what the kernel computes.
pub(crate) struct Form {
    /// The name of its kernel.
    pub(crate) kernel: &'static str,
    /// The file that has the kernel.
    pub(crate) source: &'static Source,
    pub(crate) walk: Walk,
}

/// Finds the code of an address: 0 is no route, *h* + 1 is hop *h*.
#[derive(Clone, Copy)]
pub(crate) enum Walk {
    V4(fn(&Image, u32) -> u32),
    V6(fn(&Image, u128) -> u32),
}

/// The tables of an engine in one piece of memory, as devices hold them. It never changes.
///
/// An image is made of the parts that [`AnyEngine::persist`] gives, which are position-independent. Each part begins at
/// a cache line, with some room behind it: a table that was patched mostly has the layout of the one before
/// ([`Image::after`]), and then only the bytes that differ have to be copied to the device ([`Image::changes`]).
///
/// It can be searched here, too, by a plain walk of the same bytes. That is the readable statement of the kernels, the
/// back end `cpu`, and slower than the engine.
///
/// ```
/// use fibula_accel::{Image, Walked};
/// use fibula_core::{Hop, Lookup, Routes};
/// use fibula_engines::Registry;
///
/// let routes: Routes<u32> = [("10.0.0.0/8".parse()?, Hop::new(1))].into_iter().collect();
/// let entry = Registry::product().find::<u32>("runmap").unwrap().clone();
/// let engine = entry.build(&routes, fibula_engines::Isa::best()).unwrap();
/// let image = Image::of(&*engine)?;
/// assert_eq!(Walked::<u32>::new(image.into()).lookup(0x0a00_0001), Hop::new(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Image {
    form: &'static Form,
    head: Head,
    /// Bytes of each part; 0 for those that there are not.
    lens: [usize; PARTS],
    bytes: Vec<u8>,
}

impl Image {
    /// The tables of an engine.
    ///
    /// # Errors
    /// [`DeviceError::NoKernel`] if there is no kernel for its scheme, or its tables have no stored form.
    pub fn of<A: Addr>(engine: &dyn AnyEngine<A>) -> Result<Self, DeviceError> {
        let (name, tables) =
            engine.persist().ok_or(DeviceError::NoKernel { engine: "this one" })?;
        Ok(Self::fresh(&plan::<A>(name, &tables)?))
    }

    /// A working set of about so many bytes, a power of two, whose lookup reads [`Image::GATHERS`] words of 32 bits at
    /// random places and adds them up. It is no table: it shows how fast a device reads one of this size.
    ///
    /// ```
    /// use fibula_accel::Image;
    ///
    /// let image = Image::gather(1 << 20);
    /// assert_eq!((image.kernel(), image.bytes().len() >> 20), ("gather", 1));
    /// ```
    pub fn gather(bytes: usize) -> Self {
        let count = bytes.clamp(8, 1 << 31).next_power_of_two() / size_of::<u32>();
        let words: Vec<u32> = (0..count as u32).map(|i| i.wrapping_mul(0x9e37_79b1)).collect();
        Self::fresh(&schemes::gather::plan(&words))
    }

    /// The same tables for the other kernel of their scheme, `None` if it has none: eight neighbouring threads,
    /// *lanes*, compare the eight keys of a node together, for their eight addresses one after the other. Which of the
    /// two is faster depends on the device; `fibula bench --device` measures both.
    ///
    /// ```
    /// use fibula_accel::Image;
    /// use fibula_core::{Hop, Routes};
    /// use fibula_engines::{Isa, Registry};
    ///
    /// let routes: Routes<u128> = [("2001:db8::/32".parse()?, Hop::new(1))].into_iter().collect();
    /// let entry = Registry::product().find::<u128>("planb").unwrap().clone();
    /// let image = Image::of(&*entry.build(&routes, Isa::best()).unwrap())?;
    /// let by_lanes = image.by_lanes().expect("PlanB has both");
    /// assert_eq!((image.kernel(), by_lanes.kernel()), ("planb16", "planb16_lanes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn by_lanes(&self) -> Option<Self> {
        let form = schemes::by_lanes(self.form)?;
        Some(Self { form, head: self.head, lens: self.lens, bytes: self.bytes.clone() })
    }

    /// Reads of a key in [`Image::gather`].
    pub const GATHERS: usize = schemes::gather::READS as usize;

    fn fresh(plan: &Plan<'_>) -> Self {
        let mut at = [0; PARTS];
        let mut end = 0;
        for (at, part) in at.iter_mut().zip(&plan.parts) {
            *at = end;
            end = (end + part.len() + part.len() / SLACK + PADDING).next_multiple_of(LINE);
        }
        Self::laid_out(plan, at.map(|at| (at / LINE) as u32))
    }

    /// The tables of an engine that follows the one of this image, in the same places where they fit, for the same of
    /// the scheme's kernels.
    ///
    /// # Errors
    /// As [`Image::of`].
    pub fn after<A: Addr>(&self, engine: &dyn AnyEngine<A>) -> Result<Self, DeviceError> {
        let (name, tables) =
            engine.persist().ok_or(DeviceError::NoKernel { engine: "this one" })?;
        let mut plan = plan::<A>(name, &tables)?;
        if schemes::is_by_lanes(self.form) {
            plan.form = schemes::by_lanes(plan.form).unwrap_or(plan.form);
        }
        let same_parts = plan.parts.len() == self.parts();
        let fits = plan.parts.iter().enumerate().all(|(i, part)| {
            let next = if i + 1 < plan.parts.len() { self.at(i + 1) } else { usize::MAX };
            self.at(i) + part.len() + PADDING <= next
        });
        if std::ptr::eq(plan.form, self.form) && same_parts && fits {
            return Ok(Self::laid_out(&plan, self.head.at));
        }
        Ok(Self::fresh(&plan))
    }

    fn laid_out(plan: &Plan<'_>, at: [u32; PARTS]) -> Self {
        let mut head = Head { at, ..Head::default() };
        head.words[..plan.words.len()].copy_from_slice(&plan.words);
        let mut lens = [0; PARTS];
        let end = plan.parts.iter().zip(at).map(|(part, at)| at as usize * LINE + part.len()).max();
        let mut bytes = Vec::with_capacity(end.unwrap_or(0) + PADDING + LINE);
        for (i, part) in plan.parts.iter().enumerate() {
            bytes.resize(at[i] as usize * LINE, 0);
            bytes.extend_from_slice(part);
            lens[i] = part.len();
        }
        bytes.resize((bytes.len() + PADDING).next_multiple_of(LINE), 0);
        Self { form: plan.form, head, lens, bytes }
    }

    /// The family of its addresses.
    pub fn family(&self) -> Family {
        match self.form.walk {
            Walk::V4(_) => Family::V4,
            Walk::V6(_) => Family::V6,
        }
    }

    /// The name of its kernel: the scheme and the width of its codes.
    pub fn kernel(&self) -> &'static str {
        self.form.kernel
    }

    /// All bytes, as a device holds them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The ranges of bytes in which it differs from the image before it, in blocks of 4 KiB. `None` if the layouts
    /// differ, so that the whole image has to be copied.
    pub fn changes(&self, before: &Self) -> Option<Vec<Range<usize>>> {
        if !std::ptr::eq(self.form, before.form) || self.head.at != before.head.at {
            return None;
        }
        let mut changes: Vec<Range<usize>> = Vec::new();
        for (start, block) in (0..).step_by(BLOCK).zip(self.bytes.chunks(BLOCK)) {
            let end = start + block.len();
            if before.bytes.get(start..end) == Some(block) {
                continue;
            }
            match changes.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => changes.push(start..end),
            }
        }
        Some(changes)
    }

    pub(crate) fn form(&self) -> &'static Form {
        self.form
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Number `i` of the scheme.
    pub(crate) fn word(&self, i: usize) -> u32 {
        self.head.words[i]
    }

    /// Element `index` of part `part`.
    pub(crate) fn get<T: Pod>(&self, part: usize, index: usize) -> T {
        self.read(part, index * size_of::<T>())
    }

    /// The value at byte `byte` of part `part`.
    pub(crate) fn read<T: Pod>(&self, part: usize, byte: usize) -> T {
        let at = self.at(part) + byte;
        bytemuck::pod_read_unaligned(&self.bytes[at..at + size_of::<T>()])
    }

    fn at(&self, part: usize) -> usize {
        self.head.at[part] as usize * LINE
    }

    /// The number of parts: each has bytes, or begins after the first one.
    fn parts(&self) -> usize {
        (0..PARTS).filter(|&i| i == 0 || self.head.at[i] > 0).count()
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { form, lens, bytes, .. } = self;
        write!(f, "Image({}, parts of {lens:?} bytes, {} in all)", form.kernel, bytes.len())
    }
}

fn plan<'a, A: Addr>(
    name: &'static str,
    tables: &'a [TableRef<'a>],
) -> Result<Plan<'a>, DeviceError> {
    schemes::plan(A::FAMILY, name, tables).ok_or(DeviceError::NoKernel { engine: name })
}

/// An image searched by its walk, as an engine.
#[derive(Clone, Debug)]
pub struct Walked<A: Addr> {
    image: Arc<Image>,
    family: std::marker::PhantomData<A>,
}

impl<A: Addr> Walked<A> {
    /// The image of a table of this family.
    ///
    /// # Panics
    /// If the image is one of the other family.
    pub fn new(image: Arc<Image>) -> Self {
        assert_eq!(image.family(), A::FAMILY, "the image's family");
        Self { image, family: std::marker::PhantomData }
    }
}

impl<A: Addr> Lookup<A> for Walked<A> {
    fn lookup(&self, addr: A) -> Hop {
        let code = match self.image.form.walk {
            Walk::V4(walk) => walk(&self.image, addr.to_u128() as u32),
            Walk::V6(walk) => walk(&self.image, addr.to_u128()),
        };
        Hop::from_bits(code.wrapping_sub(1))
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        for (&addr, hop) in addrs.iter().zip(hops) {
            *hop = self.lookup(addr);
        }
    }

    fn memory(&self) -> Memory {
        Memory::new([("image", self.image.bytes.len())])
    }
}
