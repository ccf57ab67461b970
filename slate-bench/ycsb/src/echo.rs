//! A server that reads whole messages and answers each with a fixed number of bytes. Its rate is an upper limit for
//! that of a database.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::{Arguments, Error};

/// Maximum length of a message, in bytes.
const MAX_MESSAGE: usize = 48 << 20;

pub(crate) async fn serve(arguments: &Arguments) -> Result<(), Error> {
    let listener = TcpListener::bind(arguments.address.as_deref().ok_or("--listen is missing")?).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let reply = arguments.reply;
        tokio::spawn(async move {
            // An error means that the client disconnected.
            let _ = answer(stream, reply).await;
        });
    }
}

async fn answer(stream: TcpStream, bytes: usize) -> Result<(), Error> {
    stream.set_nodelay(true)?;
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut reply = vec![0; bytes.max(16)];
    let length = i32::try_from(reply.len())?.to_le_bytes();
    reply.iter_mut().zip(length).for_each(|(byte, of_length)| *byte = of_length);
    let mut message = Vec::new();
    loop {
        let length = usize::try_from(read.read_i32_le().await?)?;
        if !(16..=MAX_MESSAGE).contains(&length) {
            return Err("the length of a message is wrong".into());
        }
        message.resize(length - 4, 0);
        read.read_exact(&mut message).await?;
        write.write_all(&reply).await?;
    }
}
